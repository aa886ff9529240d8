import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configWith, examples, problemsWith } from '../testing/configured.ts'

test('the gateway.json of docs/energy.md is valid, and a switch without a table is not', () => {
  const { energy } = configWith(JSON.parse(examples('energy.md', 'json')[1] ?? ''))
  assert.deepEqual(energy, { enabled: false, file: '/etc/plat/energy.json', defaultRegion: 'eu-north-1' })
  assert.deepEqual(problemsWith({ energy: { enabled: true } }), ['energy.file: is required with energy.enabled'])
})
