# The command line: its parts with made-up results, and the program itself with the demo model, driven by Python's standard library.
file(GLOB front CONFIGURE_DEPENDS src/front/*.c)
foreach(name front prompt)
  add_executable(${name}_test tests/cli/${name}_test.c ${front})
  target_include_directories(${name}_test PRIVATE include src)
  target_link_libraries(${name}_test PRIVATE stencil_static PkgConfig::CMOCKA PkgConfig::JANSSON)
  add_test(NAME cli.${name} COMMAND ${name}_test)
endforeach()

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET stencil)
  foreach(topic Usage Documents Models Formats Outputs Pictures Answers Everything Bench Terminal Cancel Manual)
    string(TOLOWER ${topic} name)
    add_test(NAME cli.${name}
      COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/cli/cli_test.py $<TARGET_FILE:stencil> ${topic})
  endforeach()
else()
  message(STATUS "tests of the program: NOT RUN, no Python 3 found")
endif()
