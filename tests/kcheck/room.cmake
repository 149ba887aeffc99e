# The kernel checker: all levels in one run, each level alone, and, where the emulators are installed, other CPUs. A level or emulator that is
# not there shows as skipped, not as passed.
file(GLOB ST_KCHECK CONFIGURE_DEPENDS tests/kcheck/*.c)
add_executable(kcheck ${ST_KCHECK})
target_include_directories(kcheck PRIVATE tests/kcheck)
target_link_libraries(kcheck PRIVATE stencil_static)
target_compile_definitions(kcheck PRIVATE $<$<BOOL:${ST_X86}>:ST_ARCH_X86=1> $<$<BOOL:${ST_ARM}>:ST_ARCH_ARM=1>)
# sigsetjmp makes gcc fear for every loop variable; none is changed between the setjmp and the jump, so C keeps them.
target_compile_options(kcheck PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-clobbered>)
add_test(NAME kcheck.all COMMAND kcheck --expect ref)
foreach(level ref avx2 avx2-vnni avx512 avx512-vnni amx neon neon-dot)
  add_test(NAME kcheck.${level} COMMAND kcheck --level ${level})
  set_tests_properties(kcheck.${level} PROPERTIES SKIP_REGULAR_EXPRESSION "NOT RUN")
endforeach()
if(NOT ST_SANITIZE) # their runtimes do not run under the emulators
  add_test(NAME kcheck.emulated.aarch64 COMMAND ${CMAKE_SOURCE_DIR}/tests/kcheck/emulated.sh ${CMAKE_SOURCE_DIR} aarch64)
  add_test(NAME kcheck.emulated.x86_64 COMMAND ${CMAKE_SOURCE_DIR}/tests/kcheck/emulated.sh ${CMAKE_SOURCE_DIR} x86_64 $<TARGET_FILE:kcheck>)
  set_tests_properties(kcheck.emulated.aarch64 kcheck.emulated.x86_64 PROPERTIES SKIP_RETURN_CODE 77)
  if(NOT ST_X86)
    set_tests_properties(kcheck.emulated.x86_64 PROPERTIES DISABLED ON)
  endif()
endif()
