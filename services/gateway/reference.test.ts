import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Check } from 'typebox/schema'
import { REFERENCE_FOLDER, referencePages } from './reference.ts'

for (const [name, text] of Object.entries(referencePages())) {
  test(`docs/reference/${name} is what the tables say; node services/gateway/reference.ts writes it again`, () => {
    assert.equal(readFileSync(path.join(REFERENCE_FOLDER, name), 'utf8'), text)
  })
}

test('the published schema accepts the least file and refuses unknown keys, wrong types and missing ones', () => {
  const schema = JSON.parse(referencePages()['gateway.schema.json'] ?? '')
  const least = { policyFile: 'p', auditPath: 'a', upstreamsFile: 'u', identity: { publicKeyFiles: ['k'] } }
  assert.ok(Check(schema, least))
  assert.ok(Check(schema, { ...least, web: { maxRedirects: 5 } }))
  assert.ok(!Check(schema, { ...least, frobnicate: 1 }))
  assert.ok(!Check(schema, { ...least, maxBodyBytes: 'x' }))
  assert.ok(!Check(schema, { ...least, policyFile: undefined, auditPath: 5 }))
  const { policyFile: _, ...rest } = least
  assert.ok(!Check(schema, rest))
})
