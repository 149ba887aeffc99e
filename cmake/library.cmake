# One object library, from which the shared and the static library, the program and the tests are linked.
file(GLOB ST_SOURCES CONFIGURE_DEPENDS
  src/base/*.c src/kernels/*.c src/kernels/ref/*.c src/tensor/*.c src/weights/*.c src/text/*.c src/vision/*.c src/detect/*.c src/click/*.c
  src/mask/*.c src/picture/*.c src/engine/*.c)
add_library(stencil_objects OBJECT ${ST_SOURCES})
target_include_directories(stencil_objects PUBLIC include src)
target_compile_definitions(stencil_objects PUBLIC ${ST_DEFS})
target_link_libraries(stencil_objects PUBLIC ${ST_LIBS})

# Instruction sets only on the files of their own folder; nothing in them runs before the CPU check.
function(st_isa_sources dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.c)
  target_sources(stencil_objects PRIVATE ${sources})
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${ARGN}")
endfunction()
if(ST_X86)
  set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -O3)
  st_isa_sources(src/kernels/avx2 -mavx2 -mfma -mf16c -O3)
  st_isa_sources(src/kernels/avx2_vnni -mavx2 -mfma -mf16c -mavxvnni -O3)
  st_isa_sources(src/kernels/avx512 ${avx512})
  st_isa_sources(src/kernels/avx512_vnni ${avx512} -mavx512vnni)
  st_isa_sources(src/kernels/amx ${avx512} -mavx512vnni -mamx-tile -mamx-int8)
  target_compile_definitions(stencil_objects PUBLIC ST_ARCH_X86=1)
elseif(ST_ARM)
  st_isa_sources(src/kernels/neon -O3)
  st_isa_sources(src/kernels/neon_dot -march=armv8.2-a+dotprod -O3)
  target_compile_definitions(stencil_objects PUBLIC ST_ARCH_ARM=1)
endif()
include(cmake/generated.cmake OPTIONAL) # tables linked into the library

add_library(stencil_static STATIC $<TARGET_OBJECTS:stencil_objects>)
set_target_properties(stencil_static PROPERTIES OUTPUT_NAME stencil)
target_include_directories(stencil_static PUBLIC include src)
target_compile_definitions(stencil_static PUBLIC ${ST_DEFS})
target_link_libraries(stencil_static PUBLIC ${ST_LIBS})

add_library(stencil_shared SHARED $<TARGET_OBJECTS:stencil_objects>)
set_target_properties(stencil_shared PROPERTIES OUTPUT_NAME stencil VERSION ${ST_VERSION} SOVERSION 0)
target_link_libraries(stencil_shared PRIVATE ${ST_LIBS})
