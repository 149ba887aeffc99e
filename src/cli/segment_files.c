/* segment_files.c: masks and overlays of one picture, each complete or absent. */
#include "cli/segment_job.h"

#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/overlay.h"

/* FOLDER/STEM_SLUG_001.png; *name from malloc. `pixels` is one dense mask. */
static st_status write_mask(st_segment_job *j, char **name, const char *source, const char *slug, size_t number,
                            const st_rle *mask, uint8_t *pixels, st_error *err)
{
    char tail[80];
    snprintf(tail, sizeof tail, "_%s_%03zu.png", slug, number);
    *name = st_names_make(&j->names, j->args.output, source, tail);
    if (!*name) return st_fault(err, ST_ERR_NOMEM, "out of memory while writing masks");
    st_rle_to_dense(mask, pixels, mask->width, 255);
    return st_png_write(*name, pixels, mask->width, mask->height, 1, err);
}

/* Every instance of one prompt. */
static st_status write_instances(st_segment_job *j, const st_picture_report *p, st_prompt_report *prompt,
                                 uint8_t *pixels, st_error *err)
{
    const size_t n = prompt->result->n_instances;
    char slug[48];
    st_phrase_slug(slug, prompt->phrase);
    prompt->mask_files = calloc(n ? n : 1, sizeof *prompt->mask_files);
    st_status status = prompt->mask_files ? ST_OK : st_fault(err, ST_ERR_NOMEM, "out of memory while writing masks");
    for (size_t i = 0; status == ST_OK && i < n; i++)
        status = write_mask(j, &prompt->mask_files[i], p->file, slug, i + 1, &prompt->result->instances[i].mask, pixels,
                            err);
    return status;
}

/* Every candidate of one object. */
static st_status write_candidates(st_segment_job *j, const st_picture_report *p, size_t number, uint8_t *pixels,
                                  st_error *err)
{
    st_object_report *object = &p->objects[number - 1];
    const size_t n = object->result->n_candidates;
    char slug[48];
    snprintf(slug, sizeof slug, "object-%zu", number);
    object->mask_files = calloc(n, sizeof *object->mask_files);
    st_status status = object->mask_files ? ST_OK : st_fault(err, ST_ERR_NOMEM, "out of memory while writing masks");
    for (size_t i = 0; status == ST_OK && i < n; i++)
        status = write_mask(j, &object->mask_files[i], p->file, slug, i + 1, &object->result->candidates[i].mask,
                            pixels, err);
    return status;
}

st_status st_segment_write_masks(st_segment_job *j, st_picture_report *p, st_error *err)
{
    st_status status = ST_OK;
    uint8_t *pixels = malloc((size_t)p->width * p->height);
    if (!pixels) return st_fault(err, ST_ERR_NOMEM, "out of memory for a mask of %u x %u pixels", p->width, p->height);
    for (size_t k = 0; status == ST_OK && k < p->n_prompts; k++)
        status = write_instances(j, p, &p->prompts[k], pixels, err);
    for (size_t k = 0; status == ST_OK && k < p->n_objects; k++) status = write_candidates(j, p, k + 1, pixels, err);
    free(pixels);
    return status;
}

static bool is_a_picture(const st_segment_job *j, const char *path)
{
    for (size_t i = 0; i < j->args.n_pictures; i++)
        if (st_same_file(path, j->args.pictures[i])) return true;
    return false;
}

st_status st_segment_write_overlay(st_segment_job *j, const st_picture_report *p, st_bitmap *bitmap, st_error *err)
{
    char *path = j->overlays ? st_names_make(&j->names, j->overlays, p->file, ".overlay.png") : strdup(j->args.overlay);
    st_status status = ST_OK;
    if (!path) status = st_fault(err, ST_ERR_NOMEM, "out of memory while writing the overlay");
    else if (is_a_picture(j, path))
        status = st_fault(err, ST_ERR_IO, "%s: the overlay would overwrite this picture", path);
    else {
        st_overlay_draw(bitmap, p);
        status = st_overlay_save(bitmap, path, err);
        if (status == ST_OK) st_console_note(&j->console, "wrote %s", path);
    }
    free(path);
    return status;
}
