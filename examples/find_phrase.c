/* find_phrase.c: the whole library in one small program: a model, a picture, a phrase; prints what was found.
 *
 *     cc find_phrase.c -o find_phrase $(pkg-config --cflags --libs stencil)
 *     ./find_phrase sam3.safetensors photo.jpg "forklift"
 */
#include <stdio.h>
#include <stencil/stencil.h>

static void print_result(const st_result *result)
{
    printf("%zu found, the picture shows the concept with probability %.3f\n", result->n_instances, (double)result->presence);
    for (size_t i = 0; i < result->n_instances; i++) {
        const st_instance *it = &result->instances[i];
        printf("%zu: score %.3f, box %.1f %.1f %.1f %.1f, %llu pixels\n", i + 1, (double)it->score, (double)it->box[0],
               (double)it->box[1], (double)it->box[2], (double)it->box[3], (unsigned long long)it->area);
    }
    if (result->warnings & ST_WARN_PROMPT_CUT) printf("the phrase was longer than the model reads\n");
}

int main(int argc, char **argv)
{
    st_error err = { ST_OK, "" };
    st_model *model = NULL;
    st_session *session = NULL;
    st_picture *picture = NULL;
    st_result *result = NULL;
    st_bitmap bitmap = { 0 };
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL PICTURE PHRASE\n", argv[0]);
        return 2;
    }

    st_status status = st_model_open(&model, argv[1], NULL, &err);
    if (status == ST_OK) status = st_session_new(&session, model, NULL, &err);
    if (status == ST_OK) status = st_bitmap_load(&bitmap, argv[2], NULL, &err);
    if (status == ST_OK) {
        const st_image image = { bitmap.rgb, bitmap.width, bitmap.height, (size_t)bitmap.width * 3, ST_PIXEL_RGB8 };
        status = st_picture_encode(&picture, session, &image, NULL, &err); /* once, for any number of phrases */
    }
    if (status == ST_OK) {
        st_prompt prompt = ST_PROMPT_INIT;
        prompt.phrase = argv[3];
        status = st_segment(&result, session, picture, &prompt, NULL, &err);
    }
    if (status == ST_OK) print_result(result);
    else fprintf(stderr, "%s\n", err.message);

    st_result_free(result);
    st_picture_free(picture);
    st_bitmap_free(&bitmap);
    st_session_free(session);
    st_model_free(model);
    return status == ST_OK ? 0 : 1;
}
