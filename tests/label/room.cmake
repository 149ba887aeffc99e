# The labelling room: one cmocka program per tests/label/<module>_test.c, linked with the front rooms.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_test" "" topic ${name})
  add_executable(label_${name} ${source})
  target_include_directories(label_${name} PRIVATE tests)
  target_link_libraries(label_${name} PRIVATE stencil_front PkgConfig::CMOCKA)
  target_compile_definitions(label_${name} PRIVATE ST_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME label.${topic} COMMAND label_${name})
endforeach()

# The program itself: tiles, duplicates, sweep and negatives with the demo model.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET stencil)
  foreach(topic Tiles Duplicates Sweep)
    string(TOLOWER ${topic} name)
    add_test(NAME cli.label-${name}
      COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
              ${CMAKE_SOURCE_DIR}/tests/cli/label_tile_test.py $<TARGET_FILE:stencil> ${topic})
  endforeach()
endif()
