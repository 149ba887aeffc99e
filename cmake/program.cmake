# The program's rooms see only the public headers and the front room. What more than one of them uses is a library of
# its own, so that tests reach it.
file(GLOB ST_FRONT CONFIGURE_DEPENDS src/front/*.c src/label/*.c)
file(GLOB ST_PROGRAM CONFIGURE_DEPENDS src/cli/*.c)
if(ST_FRONT AND ST_PROGRAM)
  add_library(stencil_front STATIC ${ST_FRONT})
  target_include_directories(stencil_front PUBLIC include src)
  target_link_libraries(stencil_front PUBLIC stencil_static PkgConfig::JANSSON)
  add_executable(stencil ${ST_PROGRAM})
  target_include_directories(stencil PRIVATE include src ${CMAKE_BINARY_DIR}/generated)
  add_custom_target(stencil_commit BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/commit.h
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${CMAKE_BINARY_DIR}/generated/commit.h -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)
  add_dependencies(stencil stencil_commit)
  target_link_libraries(stencil PRIVATE stencil_front)
endif()
