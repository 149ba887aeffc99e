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

# A function of a library that the test stands in for.
target_link_options(label_no_memory_test PRIVATE -Wl,--wrap=json_loadb)

# What exports write, read back and turned into masks again, by readers of our own: Python's standard library only.
add_executable(label_make_store ${CMAKE_CURRENT_LIST_DIR}/make_store.c)
target_include_directories(label_make_store PRIVATE tests)
target_link_libraries(label_make_store PRIVATE stencil_front)
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET stencil)
  add_test(NAME label.read_back
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/read_back_test.py
            $<TARGET_FILE:stencil> $<TARGET_FILE:label_make_store>)
else()
  message(STATUS "labels read back: NOT RUN, no Python 3 found")
endif()

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

# The program: jobs as a person runs them, and killed at any moment (`inotify`: Linux).
if(Python3_FOUND AND TARGET stencil)
  foreach(topic Store Sources Progress Changes DryRun Shards Folder)
    string(TOLOWER ${topic} name)
    add_test(NAME cli.label-${name}
      COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/cli/label_test.py
              $<TARGET_FILE:stencil> ${topic})
  endforeach()
  add_test(NAME cli.label-kill
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/cli/label_kill_test.py
            $<TARGET_FILE:stencil>)
endif()
