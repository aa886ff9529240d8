import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'

const text = { type: 'string', maxLength: 256 } as const
const texts = { type: 'array', maxItems: 64, items: text } as const
const flag = { type: 'boolean' } as const
const time = { type: 'string', format: 'date-time' } as const
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

/** Who acts, for whom and with what is fixed when a session is made: whoever may edit it later cannot become another user. */
const FIXED = ['agentRef', 'user', 'groups', 'principalVerified', 'scopes', 'ttl', 'fork'] as const

const agentSession = {
  spec: {
    type: 'object',
    required: ['agentRef'],
    properties: {
      agentRef: { ...text, minLength: 1 },
      user: text,
      groups: { ...texts, maxItems: 32 },
      principalVerified: { type: 'string', enum: ['requester', 'trustedCreator', 'idToken'] },
      scopes: texts,
      ttl: { type: 'string', maxLength: 32 },
      fork: { type: 'object', properties: { parent: text, root: text, inheritTaints: flag } },
      suspend: flag,
    },
    'x-kubernetes-validations': FIXED.map((name) => ({
      rule: `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`,
      message: `${name} cannot be changed`,
    })),
  },
  status: {
    type: 'object',
    properties: {
      phase: text,
      conditions: { type: 'array', maxItems: 32, items: anything },
      spiffeId: { type: 'string', maxLength: 2048 },
      jti: text,
      sandboxRef: { type: 'object', properties: { name: text, uid: text } },
      podRef: { type: 'object', properties: { name: text, uid: text } },
      env: { type: 'object', maxProperties: 256, additionalProperties: { type: 'string', maxLength: 4096 } },
      inheritedTaints: texts,
      startedAt: time,
      expiresAt: time,
      lastActivity: time,
    },
  },
} as const

/** Our kinds, as far as bootstrap reads them. */
const OURS = [
  { kind: 'AgentSession', plural: 'agentsessions', scope: 'Namespaced', properties: agentSession },
  { kind: 'Agent', plural: 'agents', scope: 'Namespaced', properties: { spec: anything } },
  { kind: 'TrustTier', plural: 'trusttiers', scope: 'Cluster', properties: { spec: anything } },
] as const

/** Every CustomResourceDefinition that the tests need: ours, and agent-sandbox's from the folder. */
export function definitions(sandboxFolder: string): readonly object[] {
  return [...OURS.map(definitionOf), ...sandboxDefinitions(sandboxFolder)]
}

function definitionOf({ kind, plural, scope, properties }: (typeof OURS)[number]): object {
  const version = {
    name: 'v1alpha1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: { type: 'object', properties } },
    ...('status' in properties && { subresources: { status: {} } }),
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.plat.dev` },
    spec: { group: 'plat.dev', scope, names: { kind, plural, singular: kind.toLowerCase() }, versions: [version] },
  }
}

/** Without the webhook that converts between versions: no controller runs here, and all is written in the stored version. */
function sandboxDefinitions(folder: string): readonly object[] {
  return readdirSync(folder).map((name) => {
    const { apiVersion, kind, metadata, spec } = parse(readFileSync(path.join(folder, name), 'utf8'))
    return { apiVersion, kind, metadata: { name: metadata.name }, spec: { ...spec, conversion: { strategy: 'None' } } }
  })
}
