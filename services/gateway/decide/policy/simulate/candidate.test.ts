import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadCedar } from '@plat/resources/cedar'
import type { PolicyFile, RuleEntry } from '@plat/resources/rendered'
import { testPolicy } from '@plat/testkit/policies'
import fc from 'fast-check'
import { testTarget } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { compilePolicies } from '../compile.ts'
import { decodePolicies } from '../decode.ts'
import { judge } from '../judge.ts'
import type { PolicyInput } from '../policy-input.ts'
import { CandidatePolicies } from './candidate.ts'

const identity = { ...testIdentity, agent: 'assistant' }
const target = { ...testTarget, server: 'notes', tool: 'add' }
const input: PolicyInput = {
  identity,
  target,
  tool: 'add',
  operation: 'mcp.call',
  method: 'tools/call',
  taints: [],
  sinks: [],
  args: 'unknown',
  now: 0,
}

function fileOf(rules: readonly object[], more: object = {}): PolicyFile {
  const policies = [testPolicy({ namespace: identity.namespace, rules, ...more })]
  const decoded = decodePolicies(
    Buffer.from(JSON.stringify({ version: 1, generation: 1, revision: 'sha256:1', policies })),
  )
  if (!decoded.ok) assert.fail(decoded.problems.join('\n'))
  return decoded.file
}

function candidateOf(rules: readonly object[], more: object = {}, cedar: Awaited<ReturnType<typeof loadCedar>> = null) {
  const compiled = CandidatePolicies.compile(fileOf(rules, more), cedar)
  if (!(compiled instanceof CandidatePolicies)) assert.fail(compiled.join('\n'))
  return compiled
}

const when = 'args.a == 1'
const rule = (action: string, more: object = {}) => ({ name: `${action}-${JSON.stringify(more)}`, action, ...more })

test('a simulation needs arguments only where they change the verdict', () => {
  const possible = (...rules: object[]) => candidateOf(rules).judge(input).possible
  assert.deepEqual(possible(rule('allow')), ['allow'])
  assert.deepEqual(possible(rule('allow', { when })), ['allow', 'deny'])
  assert.deepEqual(possible(rule('allow', { when }), rule('allow')), ['allow'])
  assert.deepEqual(possible(rule('allow'), rule('deny', { when })), ['allow', 'deny'])
  assert.deepEqual(possible(rule('deny'), rule('allow', { when })), ['deny'])
  assert.deepEqual(possible(rule('require_approval'), rule('allow', { when })), ['require_approval'])
  assert.deepEqual(possible(rule('deny', { when, match: { tools: ['other'] } }), rule('allow')), ['allow'])
  assert.deepEqual(possible(rule('allow', { when: 'identity.agent == "assistant"' })), ['allow'])
})

test('unknown members beside known arguments matter only where a rule reads them', () => {
  const args = Buffer.from('{"a":1}')
  const possible = (...rules: object[]) => candidateOf(rules).judge({ ...input, args, beside: 'unknown' }).possible
  assert.deepEqual(possible(rule('allow', { when })), ['allow'])
  assert.deepEqual(possible(rule('allow'), rule('deny', { when: "'a' in meta" })), ['allow', 'deny'])
  assert.deepEqual(possible(rule('deny', { when }), rule('allow', { when: 'size(inputResponses) > 0' })), ['deny'])
  assert.deepEqual(candidateOf([rule('deny', { when: "'a' in meta" })]).judge({ ...input, args }).possible, ['deny'])
})

const actions = ['allow', 'deny', 'require_approval'] as const

test('the verdicts possible without arguments are those that some arguments lead to, and no others', () => {
  const some = fc.record({
    action: fc.constantFrom(...actions),
    a: fc.constantFrom(null, 0, 1, 2),
    tools: fc.constantFrom(undefined, ['add'], ['other']),
  })
  fc.assert(
    fc.property(fc.array(some, { maxLength: 5 }), (list) => {
      // Each rule reads a different member, so that arguments can select any set of rules.
      const rules = list.map(({ action, a, tools }, at) => ({
        name: `r${at}`,
        action,
        ...(tools !== undefined && { match: { tools } }),
        ...(a !== null && { when: `args.m${at} == ${a}` }),
      }))
      const compiled = compilePolicies(fileOf(rules))
      assert.ok('set' in compiled)
      const found = new Set<string>()
      for (let chosen = 0; chosen < 2 ** list.length; chosen++) {
        const args = Object.fromEntries(list.map(({ a }, at) => [`m${at}`, (chosen >> at) & 1 ? a : -1]))
        found.add(judge(compiled.set, { ...input, args: Buffer.from(JSON.stringify(args)) }).action)
      }
      const { decision, possible } = candidateOf(rules).judge(input)
      assert.deepEqual(new Set(possible), found)
      assert.equal(decision === null, found.size > 1)
      if (decision !== null) assert.ok(found.has(decision.action))
    }),
  )
})

test('known arguments are judged as in a call', () => {
  const candidate = candidateOf([rule('allow'), rule('deny', { when })])
  const of = (args: object) => candidate.judge({ ...input, args: Buffer.from(JSON.stringify(args)) }).decision?.action
  assert.deepEqual([of({ a: 1 }), of({ a: 2 })], ['deny', 'allow'])
})

test('a Cedar text that reads arguments needs them, and others are evaluated', async () => {
  const cedar = await loadCedar()
  assert.ok(cedar !== null)
  const permit = 'permit(principal, action, resource);'
  const judged = (text: string) => candidateOf([], { cedar: text }, cedar).judge(input)
  assert.equal(judged(permit).decision?.action, 'allow')
  assert.equal(judged(`${permit} forbid(principal, action, resource) when { context.args has a };`).decision, null)
})

test('a candidate with a mistake is refused, and every mistake is named', () => {
  const broken = { ...fileOf([]), policies: fileOf([rule('allow', { when: 'args.' })]).policies }
  const problems = CandidatePolicies.compile(broken, null)
  assert.ok(!(problems instanceof CandidatePolicies))
  assert.match(problems.join('\n'), /policies\[0\]\.rules\[0\]\.when: /)
  const text = CandidatePolicies.compile(fileOf([], { cedar: 'permit(' }), null)
  assert.ok(!(text instanceof CandidatePolicies))
  const many: RuleEntry[] = Array.from({ length: 5_001 }, (_, at) => ({ name: String(at), action: 'allow' }))
  const [policy] = fileOf([]).policies
  assert.ok(policy !== undefined)
  const full = CandidatePolicies.compile({ ...fileOf([]), policies: [{ ...policy, rules: many }] }, null)
  assert.ok(!(full instanceof CandidatePolicies))
  assert.match(full.join(), /5001 rules/)
})
