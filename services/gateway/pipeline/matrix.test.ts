import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { everywhere, type Matrix, matrix, requestOrder } from './matrix.ts'
import { matrixPage } from './matrix-doc.ts'
import type { StepName } from './stage.ts'

const rows: Matrix = matrix
const order: readonly StepName[] = requestOrder

test('docs/reference/matrix.md matches the stage matrix', async () => {
  const page = await readFile(new URL('../../../docs/reference/matrix.md', import.meta.url), 'utf8')
  assert.equal(page, matrixPage(matrix))
})

test('every row lists its stages once, in the order in which they run', () => {
  for (const [operation, row] of Object.entries(rows)) {
    const places = row.stages.map((name) => order.indexOf(name))
    assert.ok(!places.includes(-1), operation)
    assert.deepEqual(
      places,
      [...new Set(places)].sort((one, other) => one - other),
      operation,
    )
    assert.ok(!row.stages.some((name) => everywhere.has(name) || row.filters.includes(name)), operation)
  }
})

test('operations that hold money or need an approval leave a full record', () => {
  for (const [operation, row] of Object.entries(rows)) {
    const weighty = row.stages.includes('reserve') || row.stages.includes('approval') || row.long
    // The hold of a request in a batch is only computed: the batch has it, and a full record.
    assert.ok(!weighty || row.record === 'full' || operation === 'model.line', operation)
  }
})

test('every text of an MCP server is redacted, guarded and marked: results, lists, instructions and events', () => {
  for (const operation of ['mcp.call', 'mcp.get', 'mcp.list', 'mcp.control', 'mcp.listen'] as const) {
    const reviews = matrix[operation].reviews.filter((name) => ['redact', 'guard', 'mark'].includes(name))
    assert.deepEqual(reviews, ['redact', 'guard', 'mark'], operation)
  }
})
