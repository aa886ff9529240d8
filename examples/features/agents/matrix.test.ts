import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PAGES, SDK_CLIENTS } from './clients.ts'
import { clientTable, Matrix } from './matrix.ts'
import { read } from './page.ts'
import { stepsIn } from './scenario.ts'

test('the page of agents has the table of the clients that are tested, with their versions', () => {
  const expected = clientTable([...PAGES, ...SDK_CLIENTS])
  assert.ok(
    read('README.md').includes(`\n\n${expected}\n\n`),
    `docs/agents/README.md must have this table:\n${expected}`,
  )
})

test('each page names the version of its client', () => {
  for (const { page, version } of PAGES) assert.ok(read(page).includes(version), `${page}: ${version}`)
})

test('a run prints which client read which case of which server', () => {
  const [step] = stepsIn('/data')
  const [client] = PAGES
  assert.ok(step !== undefined && client !== undefined)
  const matrix = new Matrix([step, step])
  matrix.add(client, 'With a token', ['Write to [REDACTED:email].'])
  const [, , row] = matrix.text.split('\n')
  assert.equal(row, `| openai-agents ${client.version} | with a token | ✓ | ✗ |`)
  assert.match(matrix.text, /^\| client \| way \| files: redaction \|/)
})
