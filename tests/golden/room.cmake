# Stage by stage and end to end against the reference modules' own numbers.
add_executable(golden_test tests/golden/golden_test.c tests/golden/golden_compare.c tests/golden/golden_set.c tests/golden/mutations.c)
add_executable(click_golden_test tests/golden/click_golden_test.c tests/golden/golden_compare.c tests/golden/golden_set.c
                                 tests/golden/click_mutations.c)
foreach(program golden_test click_golden_test)
  target_include_directories(${program} PRIVATE tests)
  target_link_libraries(${program} PRIVATE stencil_static PkgConfig::JANSSON)
endforeach()
file(GLOB ST_GOLDEN_SETS CONFIGURE_DEPENDS tests/golden/data/*/cases.json)
foreach(cases ${ST_GOLDEN_SETS})
  get_filename_component(folder ${cases} DIRECTORY)
  get_filename_component(name ${folder} NAME)
  if(name STREQUAL "resize") # bytes without a model: unit.vision_resize_test's
    continue()
  endif()
  set(program golden_test)
  if(name MATCHES "click") # the interactive head's
    set(program click_golden_test)
  endif()
  add_test(NAME golden.${name} COMMAND ${program} --set ${folder})
  add_test(NAME golden.${name}.threads-3 COMMAND ${program} --set ${folder} --threads 3)
  if(NOT name MATCHES "sam31") # holds no stages to notice a mutation with; its arithmetic is tiny-meta's
    add_test(NAME golden.${name}.mutations COMMAND ${program} --set ${folder} --mutations)
  endif()
endforeach()
