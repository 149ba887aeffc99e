/* initialisers.c: every option struct's *_INIT macro fits its struct, field by field, in C99, C11 and C++17 without a warning. */
#include <stencil/stencil.h>

#define CHECK(type, init)                       \
    static size_t size_of_##type(void)          \
    {                                           \
        const type value = init;                \
        return value.struct_size - sizeof value; \
    }

CHECK(st_model_options, ST_MODEL_OPTIONS_INIT)
CHECK(st_model_info, ST_MODEL_INFO_INIT)
CHECK(st_session_options, ST_SESSION_OPTIONS_INIT)
CHECK(st_encode_options, ST_ENCODE_OPTIONS_INIT)
CHECK(st_prompt, ST_PROMPT_INIT)
CHECK(st_segment_options, ST_SEGMENT_OPTIONS_INIT)
CHECK(st_bitmap_options, ST_BITMAP_OPTIONS_INIT)
CHECK(st_concept_info, ST_CONCEPT_INFO_INIT)
CHECK(st_click_input, ST_CLICK_INPUT_INIT)
CHECK(st_click_options, ST_CLICK_OPTIONS_INIT)
CHECK(st_everything_options, ST_EVERYTHING_OPTIONS_INIT)
CHECK(st_png_picture, ST_PNG_PICTURE_INIT)

int main(void)
{
    const size_t wrong = size_of_st_model_options() + size_of_st_model_info() + size_of_st_session_options() +
                         size_of_st_encode_options() + size_of_st_prompt() + size_of_st_segment_options() +
                         size_of_st_bitmap_options() + size_of_st_concept_info() + size_of_st_click_input() +
                         size_of_st_click_options() + size_of_st_everything_options() + size_of_st_png_picture();
    return wrong == 0 ? 0 : 1;
}
