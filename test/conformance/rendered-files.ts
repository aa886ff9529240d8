import assert from 'node:assert/strict'
import { decodeAgents } from '@plat/gateway/rendered/agents'
import { decodeBudgets } from '@plat/gateway/rendered/budgets'
import { decodeStores } from '@plat/gateway/rendered/memory'
import { decodeModels } from '@plat/gateway/rendered/models'
import { decodePolicies } from '@plat/gateway/rendered/policies'
import { decodeFile } from '@plat/gateway/rendered/revocations'
import { decodeUpstreams } from '@plat/gateway/rendered/upstreams'
import { type Declared, renderEverything, renderRevocations } from '@plat/operator'
import { isClusterKind, type Kind, kinds, type Manifest, parseResource, type Resource } from '@plat/resources'
import { decodeSovereignty } from '@plat/resources/sovereignty'
import fc from 'fast-check'
import { anyOf } from './from-schema.ts'

/** Names that some objects share, so that they refer to one another. */
const NAMES = ['a', 'b', 'plat-x', 'n-1']
const NAMESPACES = ['team', 'other', 'plat-system']

/** Objects of a kind that its schema and its rules accept. */
function objectsOf<K extends Kind>(kind: K): fc.Arbitrary<Manifest<K>[]> {
  const one = fc
    .record({
      namespace: fc.constantFrom(...NAMESPACES),
      name: fc.constantFrom(...NAMES),
      spec: anyOf(plain(kinds[kind].spec)),
    })
    .map(({ namespace, name, spec }) => {
      const metadata = { name, ...(!isClusterKind(kind) && { namespace }) }
      const text = JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec })
      return parseResource(kind, text).object
    })
    .filter((manifest) => manifest !== null)
  return fc.uniqueArray(one, { maxLength: 3, selector: ({ metadata }) => `${metadata.namespace}/${metadata.name}` })
}

/** A schema without the types of its library. */
function plain(schema: object): object {
  return JSON.parse(JSON.stringify(schema))
}

function stored(revocation: Manifest<'AgentRevocation'>): Resource<'AgentRevocation'> {
  const more = { uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
  return { ...revocation, metadata: { ...revocation.metadata, ...more } }
}

/** The problem that each gateway reader reports for a file; null if it accepts it. */
const READERS: Readonly<Record<string, (bytes: Buffer) => readonly string[]>> = {
  'policies.json': (bytes) => problemsOf(decodePolicies(bytes)),
  'upstreams.json': (bytes) => problemsOf(decodeUpstreams(bytes)),
  'models.json': (bytes) => problemsOf(decodeModels(bytes)),
  'agents.json': (bytes) => problemsOf(decodeAgents(bytes)),
  'budgets.json': (bytes) => problemsOf(decodeBudgets(bytes)),
  'memory.json': (bytes) => problemsOf(decodeStores(bytes)),
  'sovereignty.json': (bytes) => problemsOf(decodeSovereignty(bytes)),
}

function problemsOf(decoded: object): readonly string[] {
  return 'problems' in decoded && Array.isArray(decoded.problems) ? decoded.problems : []
}

const declared = fc.record({
  agents: objectsOf('Agent'),
  servers: objectsOf('MCPServer'),
  policies: objectsOf('ToolPolicy'),
  budgets: objectsOf('BudgetPolicy'),
  memory: objectsOf('MemoryStore'),
  sovereignty: objectsOf('SovereigntyPolicy'),
  tiers: objectsOf('TrustTier'),
  home: fc.constantFrom(null, 'plat-system'),
})

/** Whatever objects a cluster accepts, the gateway accepts each file that is rendered from them. */
export const acceptsRenderedFiles = fc.property(declared, (objects) => {
  const none = { texts: new Map<string, string>(), withheld: new Map<string, string>() }
  const all: Declared = { ...objects, currency: 'USD', cedar: null, bundles: none }
  const { files } = renderEverything(all, { keyFileOf: () => '/key', previous: null })
  for (const file of files)
    assert.deepEqual(READERS[file.name]?.(Buffer.from(file.compact())), [], `${file.name}: ${file.compact()}`)
})

/** Whatever AgentRevocations a cluster accepts, the gateway accepts the file that is rendered from them. */
export const acceptsRevocations = fc.property(objectsOf('AgentRevocation'), (revocations) => {
  const { file } = renderRevocations(revocations.map(stored), 'plat-system')
  assert.deepEqual(problemsOf(decodeFile(Buffer.from(JSON.stringify(file)))), [], JSON.stringify(file))
})
