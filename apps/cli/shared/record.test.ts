import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groundsOf, targetOf, textOf } from './record.ts'

test('text of agents cannot move the cursor or reverse what an approver reads', () => {
  assert.equal(textOf('a\u001b[2Jb\u202ec\u2066d\u2028e'), 'a?[2Jb?c?d?e')
  assert.equal(targetOf({ server: 'notes', tool: 'read\u202e' }), 'notes/read?')
  assert.equal(groundsOf({ policy: 'p', rule: 'r\u200b' }), 'p#r?')
})
