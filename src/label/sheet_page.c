/* sheet_page.c: piles of cut-outs as one PNG per class and as one HTML page (see sheet.h). The page holds its pictures as
 * data: addresses and its few lines of script, so that it can be mailed and works without a network. */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_rows.h"
#include "label/sheet.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 10, GAP = 4 };

/* ---- one picture ---- */

static st_status paste(uint8_t *rgb, size_t width, size_t x, size_t y, const st_label_cutout *c, uint32_t side, st_error *err)
{
    st_bitmap b = { 0 };
    if (!c->jpeg) return ST_OK;
    const st_status status = st_bitmap_decode(&b, c->jpeg, c->n_bytes, c->name, NULL, err);
    if (status != ST_OK) return status;
    for (size_t row = 0; row < side && b.width == side && b.height == side; row++)
        memcpy(rgb + 3 * ((y + row) * width + x), b.rgb + 3 * row * side, 3 * (size_t)side);
    st_bitmap_free(&b);
    return ST_OK;
}

st_status st_label_pile_save(const st_label_pile *pile, uint32_t side, const char *folder, const char *name,
                             st_error *err)
{
    const size_t columns = pile->n < COLUMNS ? pile->n : COLUMNS, rows = (pile->n + COLUMNS - 1) / COLUMNS;
    const size_t width = columns * (side + GAP) + GAP, height = rows * (side + GAP) + GAP;
    uint8_t *rgb = calloc(width * height, 3), *bytes = NULL;
    size_t n = 0;
    st_status status = rgb ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    for (size_t i = 0; status == ST_OK && i < pile->n; i++)
        status = paste(rgb, width, GAP + i % COLUMNS * (side + GAP), GAP + i / COLUMNS * (side + GAP), &pile->items[i],
                       side, err);
    const st_png_picture png = { sizeof png, rgb, (uint32_t)width, (uint32_t)height, 3, 8, NULL, 0 };
    if (status == ST_OK) status = st_png_encode(&bytes, &n, &png, err);
    if (status == ST_OK) status = st_label_bytes_save(folder, name, bytes, n, err);
    st_bytes_free(bytes);
    free(rgb);
    return status;
}

/* ---- one page ---- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n"
    "body { font: 14px system-ui, sans-serif; margin: 0; background: #16181b; color: #e4e6e8; }\n"
    "form { position: sticky; top: 0; padding: 10px 14px; background: #23272c; display: flex; gap: 18px; flex-wrap: wrap; "
    "align-items: center; }\n"
    "input[type=number] { width: 5em; }\nh1 { font-size: 16px; margin: 0; }\n"
    "main { display: flex; flex-wrap: wrap; gap: 8px; padding: 14px; }\n"
    "figure { margin: 0; width: 160px; }\nfigure[hidden] { display: none; }\nimg { width: 100%; display: block; }\n"
    "figcaption { font-size: 12px; overflow-wrap: anywhere; color: #a9b0b7; }\n</style>\n";

static const char script[] =
    "<script>\n"
    "const form = document.forms[0], all = [...document.querySelectorAll('figure')];\n"
    "function show() {\n"
    "  const c = form.elements['class'].value, low = +form.elements.low.value, high = +form.elements.high.value;\n"
    "  let n = 0;\n"
    "  for (const f of all) {\n"
    "    const s = +f.dataset.score, on = (c === '' || f.dataset.class === c) && s >= low && s <= high;\n"
    "    f.hidden = !on;\n"
    "    n += on;\n"
    "  }\n"
    "  document.getElementById('count').textContent = n + ' of ' + all.length;\n"
    "}\n"
    "form.addEventListener('input', show);\nform.addEventListener('submit', e => e.preventDefault());\nshow();\n"
    "</script>\n";

static void put_filter(FILE *f, const st_label_pile *piles, size_t n, const char *title)
{
    fputs("<form>\n<h1>", f);
    st_label_put_xml(f, title);
    fputs("</h1>\n<label>class <select name=\"class\"><option value=\"\">all</option>\n", f);
    for (size_t k = 0; k < n; k++) {
        fprintf(f, "<option value=\"%u\">", piles[k].cls->id);
        st_label_put_xml(f, piles[k].cls->name);
        fprintf(f, " (%zu)</option>\n", piles[k].n);
    }
    fputs("</select></label>\n"
          "<label>score from <input name=\"low\" type=\"number\" min=\"0\" max=\"1\" step=\"0.01\" value=\"0\"></label>\n"
          "<label>to <input name=\"high\" type=\"number\" min=\"0\" max=\"1\" step=\"0.01\" value=\"1\"></label>\n"
          "<output id=\"count\"></output>\n</form>\n", f);
}

static st_status put_figure(FILE *f, const st_label_class *cls, const st_label_cutout *c, st_error *err)
{
    char *data = st_label_base64(c->jpeg, c->n_bytes);
    if (!data) return st_fault(err, ST_ERR_NOMEM, "sheet.html: out of memory");
    fprintf(f, "<figure data-class=\"%u\" data-score=\"", cls->id);
    st_label_put_score(f, c->score);
    fputs("\"><img loading=\"lazy\" alt=\"\" src=\"data:image/jpeg;base64,", f);
    fputs(data, f);
    fputs("\"><figcaption>", f);
    st_label_put_xml(f, cls->name);
    fputs(" ", f);
    st_label_put_score(f, c->score);
    fputs("<br>", f);
    st_label_put_xml(f, c->phrase);
    fputs("<br>", f);
    st_label_put_xml(f, c->name);
    fputs("</figcaption></figure>\n", f);
    free(data);
    return ST_OK;
}

/* All objects by rising score; piles are sorted, so the least of their fronts comes next. at [n] starts at zero. */
static st_status put_figures(FILE *f, const st_label_pile *piles, size_t n, size_t *at, st_error *err)
{
    for (;;) {
        size_t best = n;
        for (size_t k = 0; k < n; k++)
            if (at[k] < piles[k].n && (best == n || piles[k].items[at[k]].score < piles[best].items[at[best]].score))
                best = k;
        if (best == n) return ST_OK;
        const st_status status = put_figure(f, piles[best].cls, &piles[best].items[at[best]++], err);
        if (status != ST_OK) return status;
    }
}

st_status st_label_page_save(const st_label_pile *piles, size_t n, const char *title, const char *folder, st_error *err)
{
    st_label_file file;
    size_t *at = calloc(n ? n : 1, sizeof *at);
    if (!at) return st_fault(err, ST_ERR_NOMEM, "sheet.html: out of memory");
    st_status status = st_label_file_open(&file, folder, "sheet.html", err);
    if (status == ST_OK) {
        fputs(head, file.f);
        fputs("<title>", file.f);
        st_label_put_xml(file.f, title);
        fputs("</title>\n</head>\n<body>\n", file.f);
        put_filter(file.f, piles, n, title);
        fputs("<main>\n", file.f);
        status = put_figures(file.f, piles, n, at, err);
        fputs("</main>\n", file.f);
        fputs(script, file.f);
        fputs("</body>\n</html>\n", file.f);
        if (status == ST_OK) status = st_label_file_close(&file, err);
        else st_label_file_drop(&file);
    }
    free(at);
    return status;
}
