import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { posture } from './posture.ts'

const folder = tempFolder()

const there = path.join(folder, 'there.pem')
writeFileSync(there, '')

async function reportOf(own: object) {
  const file = path.join(folder, 'gateway.json')
  const least = { listen: '127.0.0.1:8080', policyFile: there, auditPath: '/a', upstreamsFile: there }
  writeFileSync(file, JSON.stringify({ ...least, identity: { publicKeyFiles: [there] }, ...own }))
  const lines: string[] = []
  const output = { out: (text: string) => void lines.push(text), err: (text: string) => void lines.push(text) }
  const code = await posture({ path: file, output: 'json' }, output)
  return { code, ids: [...lines.join('\n').matchAll(/"id": "([^"]+)"/g)].map(([, id]) => id ?? ''), lines }
}

test('risks are reported by ID until they are accepted or fixed, and set the exit code', async () => {
  const first = await reportOf({})
  assert.equal(first.code, 3)
  assert.ok(first.ids.includes('audit-open') && first.ids.includes('approvals-in-memory'))
  const less = await reportOf({ auditFailurePolicy: 'closed', posture: { accept: ['approvals-in-memory'] } })
  assert.deepEqual(
    first.ids.filter((id) => !less.ids.includes(id)),
    ['audit-open', 'approvals-in-memory'],
  )
  assert.deepEqual((await reportOf({ posture: { accept: first.ids } })).ids, [])
  assert.equal((await reportOf({ posture: { accept: first.ids } })).code, 0)
})

test('an accepted risk that no longer exists is reported, and so is an invalid file', async () => {
  const { lines } = await reportOf({ posture: { accept: ['slow-reload'] } })
  assert.match(lines[0] ?? '', /^posture\.accept: slow-reload is not a risk/)
  await assert.rejects(reportOf({ posture: { accept: ['nonsense'] } }), /posture\.accept\[0\]: no such check/)
})
