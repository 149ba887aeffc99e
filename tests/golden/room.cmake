# Stage by stage and end to end against the reference modules' own numbers.
add_executable(golden_test tests/golden/golden_test.c tests/golden/golden_set.c tests/golden/mutations.c)
target_include_directories(golden_test PRIVATE tests)
target_link_libraries(golden_test PRIVATE stencil_static PkgConfig::JANSSON)
file(GLOB ST_GOLDEN_SETS CONFIGURE_DEPENDS tests/golden/data/*/cases.json)
foreach(cases ${ST_GOLDEN_SETS})
  get_filename_component(folder ${cases} DIRECTORY)
  get_filename_component(name ${folder} NAME)
  if(name STREQUAL "resize") # bytes without a model: unit.vision_resize_test's
    continue()
  endif()
  add_test(NAME golden.${name} COMMAND golden_test --set ${folder})
  add_test(NAME golden.${name}.threads-3 COMMAND golden_test --set ${folder} --threads 3)
  if(NOT name MATCHES "sam31") # holds no stages to notice a mutation with; its arithmetic is tiny-meta's
    add_test(NAME golden.${name}.mutations COMMAND golden_test --set ${folder} --mutations)
  endif()
endforeach()
