# Benchmarks: one program per bench/<name>_bench.c; run by `make bench`, never by the tests.
file(GLOB ST_BENCHES CONFIGURE_DEPENDS bench/*_bench.c)
foreach(source ${ST_BENCHES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE stencil_static)
endforeach()
