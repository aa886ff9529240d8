import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isKind, type Kind, type Manifest, parseResource, type Resource } from '@plat/resources'
import { loadCedar } from '@plat/resources/cedar'
import {
  agentsFileSchema,
  budgetsFileSchema,
  decodeRendered,
  memoryFileSchema,
  modelsFileSchema,
  policyFileSchema,
  upstreamsFileSchema,
} from '@plat/resources/rendered'
import { decodeSovereignty } from '@plat/resources/sovereignty'
import fc from 'fast-check'
import type { Declared } from './declared.ts'
import { renderEverything } from './everything.ts'
import { renderRevocations } from './limits/revocations.ts'
import type { ModelKey } from './models.ts'
import { renderPolicies } from './policies.ts'

const FIXTURES = join(import.meta.dirname, 'fixtures')
/** `PLAT_UPDATE_GOLDEN=1 node --test …` writes what is rendered now; read the difference before it is committed. */
const UPDATE = process.env.PLAT_UPDATE_GOLDEN === '1'

const cedar = await loadCedar()

interface Scenario extends Declared {
  readonly revocations: readonly Resource<'AgentRevocation'>[]
}

function declaredIn(text: string): Scenario {
  const agents: Manifest<'Agent'>[] = []
  const servers: Manifest<'MCPServer'>[] = []
  const policies: Manifest<'ToolPolicy'>[] = []
  const budgets: Manifest<'BudgetPolicy'>[] = []
  const memory: Manifest<'MemoryStore'>[] = []
  const sovereignty: Manifest<'SovereigntyPolicy'>[] = []
  const tiers: Manifest<'TrustTier'>[] = []
  const revocations: Manifest<'AgentRevocation'>[] = []
  const take = <T>(list: T[], { object, problems }: { object: T | null; problems: readonly string[] }) => {
    if (object === null) assert.fail(problems.join('\n'))
    list.push(object)
  }
  for (const part of text.split('---\n').filter((one) => one !== '')) {
    const kind = /^kind: (\w+)$/m.exec(part)?.[1]
    assert.ok(isKind(kind))
    if (kind === 'Agent') take(agents, parseResource(kind, part))
    else if (kind === 'MCPServer') take(servers, parseResource(kind, part))
    else if (kind === 'BudgetPolicy') take(budgets, parseResource(kind, part))
    else if (kind === 'MemoryStore') take(memory, parseResource(kind, part))
    else if (kind === 'SovereigntyPolicy') take(sovereignty, parseResource(kind, part))
    else if (kind === 'TrustTier') take(tiers, parseResource(kind, part))
    else if (kind === 'AgentRevocation') take(revocations, parseResource(kind, part))
    else take(policies, parseResource('ToolPolicy', part))
  }
  return {
    ...{ agents, servers, policies, budgets, memory, sovereignty, tiers, cedar, currency: 'USD' },
    bundles: { texts: new Map(), withheld: new Map() },
    revocations: revocations.map(stored),
    home: text.startsWith('# on a cluster') ? 'plat-system' : null,
  }
}

/** As a store hands it out. */
function stored<K extends Kind>({ metadata, ...object }: Manifest<K>): Resource<K> {
  const more = { uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
  return { ...object, metadata: { ...metadata, ...more } }
}

function rendered(declared: Scenario): Record<string, string> {
  const keyFileOf = ({ namespace, secret }: ModelKey) => `/secrets/${namespace}/${secret.name}/${secret.key}`
  const { files, refused } = renderEverything(declared, { keyFileOf, previous: null })
  const revocations = declared.home === null ? null : renderRevocations(declared.revocations, declared.home)
  return {
    ...Object.fromEntries(files.map(({ name, pretty }) => [name, pretty()])),
    ...(revocations !== null && { 'revocations.json': `${JSON.stringify(revocations.file, null, 2)}\n` }),
    'refused.txt': [...(revocations?.refused ?? []), ...refused].map((line) => `${line}\n`).join(''),
  }
}

const scenarios = readdirSync(FIXTURES).toSorted()

for (const scenario of scenarios) {
  const declared = declaredIn(readFileSync(join(FIXTURES, scenario, 'input.yaml'), 'utf8'))

  test(`${scenario} renders as its golden files say`, () => {
    // Shows D2.server.toolPins.mode.default, D2.server.toolPins.onChange.default and D2.server.toolPins.mergedWithPolicy.
    for (const [name, text] of Object.entries(rendered(declared))) {
      const path = join(FIXTURES, scenario, name)
      if (UPDATE) writeFileSync(path, text)
      assert.equal(text, readFileSync(path, 'utf8'), path)
    }
  })

  test(`${scenario} renders what the gateway's decoder takes, in whatever order the resources come`, () => {
    const files = rendered(declared)
    const unbuilt = () => []
    assert.ok(decodeRendered(policyFileSchema, Buffer.from(files['policies.json'] ?? ''), unbuilt).ok)
    assert.ok(decodeRendered(upstreamsFileSchema, Buffer.from(files['upstreams.json'] ?? ''), unbuilt).ok)
    assert.ok(decodeRendered(budgetsFileSchema, Buffer.from(files['budgets.json'] ?? ''), unbuilt).ok)
    assert.ok(decodeRendered(modelsFileSchema, Buffer.from(files['models.json'] ?? ''), unbuilt).ok)
    assert.ok(decodeRendered(agentsFileSchema, Buffer.from(files['agents.json'] ?? ''), unbuilt).ok)
    assert.ok(decodeRendered(memoryFileSchema, Buffer.from(files['memory.json'] ?? ''), unbuilt).ok)
    assert.ok(decodeSovereignty(Buffer.from(files['sovereignty.json'] ?? '')).ok)
    const shuffled = <T>(list: readonly T[]) => fc.shuffledSubarray([...list], { minLength: list.length })
    const orders = fc.record({
      agents: shuffled(declared.agents),
      servers: shuffled(declared.servers),
      policies: shuffled(declared.policies),
      budgets: shuffled(declared.budgets),
      memory: shuffled(declared.memory),
      sovereignty: shuffled(declared.sovereignty),
      tiers: shuffled(declared.tiers),
      revocations: shuffled(declared.revocations),
      home: fc.constant(declared.home),
      cedar: fc.constant(cedar),
      currency: fc.constant(declared.currency),
      bundles: fc.constant(declared.bundles),
    })
    fc.assert(
      fc.property(orders, (order) => assert.deepEqual(rendered(order), files)),
      { numRuns: 10 },
    )
  })
}

test('there are scenarios', () => assert.ok(scenarios.length >= 12))

test('the generation grows when the policies change, and only then', () => {
  const declared = declaredIn(readFileSync(join(FIXTURES, 'one-agent', 'input.yaml'), 'utf8'))
  const first = renderPolicies(declared, null).file
  const second = renderPolicies(declared, first).file
  const third = renderPolicies({ ...declared, agents: [] }, second).file
  assert.deepEqual([first.generation, second.generation, third.generation], [1, 1, 2])
  assert.notEqual(first.revision, third.revision)
})
