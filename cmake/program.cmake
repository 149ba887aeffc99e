# The program `stencil` sees only the public headers and the front room.
file(GLOB ST_FRONT CONFIGURE_DEPENDS src/front/*.c src/cli/*.c)
if(ST_FRONT)
  add_executable(stencil ${ST_FRONT})
  target_include_directories(stencil PRIVATE include src)
  target_link_libraries(stencil PRIVATE stencil_static PkgConfig::JANSSON)
endif()
