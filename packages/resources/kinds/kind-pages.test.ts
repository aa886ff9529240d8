import assert from 'node:assert/strict'
import { test } from 'node:test'
import { editorSchemas } from './editor-schema.ts'
import { kindPages } from './kind-pages.ts'

test('each kind has a page with an example, and every field has a meaning there', () => {
  const pages = kindPages()
  assert.equal(pages.size, editorSchemas().size)
  for (const [name, text] of pages) {
    assert.match(text, /\n## Example\n\n```yaml\napiVersion: /, name)
    const rows = text.split('\n').filter((line) => line.startsWith('| `'))
    assert.ok(rows.length > 0, name)
    for (const row of rows) assert.match(row, /^\| `[^`]+`( \*)? \| .+ \| .* \| \S.* \|$/, `${name}: ${row}`)
  }
})

test('a page shows type, limits, default, required fields, and fields in lists and maps', () => {
  const page = kindPages().get('toolpolicy.md') ?? ''
  for (const row of [
    '| `mode` | `enforce`, `dryRun` | `"enforce"` |',
    '| `rules[].name` * | string (at least 1 character, at most 128 characters) |  |',
    '| `rules[].quorum.minApprovers` | integer from 0 to 10 | `1` |',
    '| `toolPins.<name>.pins` | map of string (at most 128 characters) (at most 512 entries) |  |',
  ])
    assert.ok(page.includes(row), row)
})
