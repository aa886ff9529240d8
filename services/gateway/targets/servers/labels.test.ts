import assert from 'node:assert/strict'
import { test } from 'node:test'
import { taintRules } from './labels.ts'

test('all entries that match a tool apply, by name or glob', () => {
  // Shows D3.registry.toolLabels.
  const rules = taintRules('trusted', {
    search: { taints: ['web'], sinks: ['query'] },
    'se*': { taints: ['web', 'seen'] },
    '*d': { sinks: ['mail'] },
    wash: { clearTaints: ['*'] },
  })
  assert.deepEqual(rules.of('search'), { taints: ['web', 'seen'], clearTaints: [], sinks: ['query'] })
  assert.deepEqual(rules.of('send'), { taints: ['web', 'seen'], clearTaints: [], sinks: ['mail'] })
  assert.deepEqual(rules.of('wash'), { taints: [], clearTaints: ['*'], sinks: [] })
  for (const other of ['other', 'constructor', null])
    assert.deepEqual(rules.of(other), { taints: [], clearTaints: [], sinks: [] })
  assert.ok(rules.clears)
})

test('all data of an untrusted server is labelled, including tools with own labels', () => {
  const rules = taintRules('untrusted', { search: { taints: ['web'] }, 's*': { sinks: ['s'] } })
  assert.deepEqual(rules.of('search').taints, ['untrusted-input', 'web'])
  for (const other of ['send', 'other', null]) assert.deepEqual(rules.of(other).taints, ['untrusted-input'])
  assert.deepEqual(taintRules('untrusted').of('x').taints, ['untrusted-input'])
  assert.deepEqual(taintRules('trusted').of('x').taints, [])
  assert.ok(!rules.clears)
})

test('data of a class above internal is labelled with it; descriptions of its server are not', () => {
  const ofClass = (dataClass: 'public' | 'internal' | 'confidential' | 'restricted') => {
    const rules = taintRules('untrusted', { search: { taints: ['web'] } }, dataClass)
    return [rules.of('search').taints, rules.of(null).taints, rules.described.taints]
  }
  const untrusted = ['untrusted-input']
  const plain = [[...untrusted, 'web'], untrusted, untrusted]
  assert.deepEqual([ofClass('public'), ofClass('internal')], [plain, plain])
  for (const dataClass of ['confidential', 'restricted'] as const) {
    const label = `data-class:${dataClass}`
    assert.deepEqual(ofClass(dataClass), [[...untrusted, label, 'web'], [...untrusted, label], untrusted])
  }
})
