import { type Static, Type } from 'typebox'
import { mapOf } from '../check.ts'
import { agentSpecSchema, agentStatusSchema } from './agent.ts'
import { budgetPolicySpecSchema, budgetPolicyStatusSchema } from './budgetpolicy.ts'
import { closed, LABEL_PATTERN } from './common.ts'
import { connectedAccountSpecSchema, connectedAccountStatusSchema } from './connectedaccount.ts'
import { mcpServerSpecSchema, mcpServerStatusSchema } from './mcpserver.ts'
import { memoryStoreSpecSchema, memoryStoreStatusSchema } from './memorystore.ts'
import { agentRevocationSpecSchema, agentRevocationStatusSchema } from './sandbox/agentrevocation.ts'
import { agentSessionSpecSchema, agentSessionStatusSchema } from './sandbox/agentsession.ts'
import { trustTierSpecSchema, trustTierStatusSchema } from './sandbox/trusttier.ts'
import { sovereigntyPolicySpecSchema, sovereigntyPolicyStatusSchema } from './sovereigntypolicy.ts'
import { toolPolicySpecSchema, toolPolicyStatusSchema } from './toolpolicy.ts'

export const API_VERSION = 'plat.dev/v1alpha1'

/** One row per kind, for CRDs, file trees and tables of `kubectl get`. */
export const kinds = {
  Agent: {
    plural: 'agents',
    shortNames: ['platagent', 'ag'],
    categories: ['plat'],
    columns: [
      ['Tier', '.spec.tier'],
      ['Profile', '.spec.profile'],
      ['Ready', '.status.conditions[?(@.type=="Ready")].status'],
      ['Sovereign', '.status.conditions[?(@.type=="SovereigntyCompliant")].status'],
      ['Policy', '.spec.policyRef'],
      ['Image', '.spec.image'],
      ['Sessions', '.status.activeSessions'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: agentSpecSchema,
    status: agentStatusSchema,
  },
  MCPServer: {
    plural: 'mcpservers',
    shortNames: ['mcps', 'mcp'],
    categories: ['plat'],
    columns: [
      ['URL', '.spec.url'],
      ['Auth', '.spec.auth.type'],
      ['Trust', '.spec.trust'],
      ['Ready', '.status.conditions[?(@.type=="Ready")].status'],
      ['Pinned', '.status.conditions[?(@.type=="Pinned")].status'],
      ['Tools', '.status.observedTools'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: mcpServerSpecSchema,
    status: mcpServerStatusSchema,
  },
  ToolPolicy: {
    plural: 'toolpolicies',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['Mode', '.spec.mode'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: toolPolicySpecSchema,
    status: toolPolicyStatusSchema,
  },
  BudgetPolicy: {
    plural: 'budgetpolicies',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['Currency', '.spec.currency'],
      ['Session', '.spec.perSession'],
      ['Day', '.spec.perDay'],
      ['Month', '.spec.perMonth'],
      ['Ready', '.status.conditions[?(@.type=="Ready")].status'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: budgetPolicySpecSchema,
    status: budgetPolicyStatusSchema,
  },
  MemoryStore: {
    plural: 'memorystores',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['Scope', '.spec.scope'],
      ['Days', '.spec.retentionDays'],
      ['Ready', '.status.conditions[?(@.type=="Ready")].status'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: memoryStoreSpecSchema,
    status: memoryStoreStatusSchema,
  },
  SovereigntyPolicy: {
    plural: 'sovereigntypolicies',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['Allowed', '.spec.allowedJurisdictions'],
      ['Denied', '.spec.deniedJurisdictions'],
      ['Required', '.spec.requireJurisdiction'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: sovereigntyPolicySpecSchema,
    status: sovereigntyPolicyStatusSchema,
  },
  TrustTier: {
    plural: 'trusttiers',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['Isolation', '.spec.isolation'],
      ['Runtime', '.spec.runtimeClassName'],
      ['Attested', '.spec.attested'],
      ['Warm', '.spec.warmPool.size'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: trustTierSpecSchema,
    status: trustTierStatusSchema,
  },
  AgentSession: {
    plural: 'agentsessions',
    shortNames: ['ags'],
    categories: ['plat'],
    columns: [
      ['Agent', '.spec.agentRef'],
      ['User', '.spec.user'],
      ['Phase', '.status.phase'],
      ['Mode', '.status.mode'],
      ['Sandbox', '.status.sandboxRef.name'],
      ['Expires', '.status.expiresAt'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: agentSessionSpecSchema,
    status: agentSessionStatusSchema,
  },
  AgentRevocation: {
    plural: 'agentrevocations',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['Mode', '.spec.mode'],
      ['Ready', '.status.conditions[?(@.type=="Ready")].status'],
      ['Expires', '.spec.expiresAt'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: agentRevocationSpecSchema,
    status: agentRevocationStatusSchema,
  },
  ConnectedAccount: {
    plural: 'connectedaccounts',
    shortNames: [],
    categories: ['plat'],
    columns: [
      ['User', '.spec.user'],
      ['Provider', '.spec.provider'],
      ['Expires', '.spec.expiresAt'],
      ['Age', '.metadata.creationTimestamp'],
    ],
    spec: connectedAccountSpecSchema,
    status: connectedAccountStatusSchema,
  },
} as const

/** Kinds that require a cluster, by plural, with the reason. */
export const CLUSTER_ONLY: Readonly<Record<string, string>> = {
  agentsessions: 'AgentSession: sandboxes need a cluster; here `plat run` starts sessions',
  agentrevocations: 'AgentRevocation: is read on a cluster; here `plat revoke` revokes',
  connectedaccounts: 'ConnectedAccount: a gateway writes it on a cluster; here `/v1/accounts` lists accounts',
}

export type Kind = keyof typeof kinds

/** Cluster-scoped kinds: their objects have no namespace, and use "" instead. */
const CLUSTER_KINDS: ReadonlySet<Kind> = new Set<Kind>(['SovereigntyPolicy', 'TrustTier'])

export function isClusterKind(kind: Kind): boolean {
  return CLUSTER_KINDS.has(kind)
}

export type AgentSpec = Static<typeof agentSpecSchema>
export type MCPServerSpec = Static<typeof mcpServerSpecSchema>
export type SpecOf<K extends Kind> = Static<(typeof kinds)[K]['spec']>
export type StatusOf<K extends Kind> = Static<(typeof kinds)[K]['status']>

const annotations = () => mapOf(Type.String({ maxLength: 262_144 }), { maxProperties: 256 })

/** Members of `metadata` that users write; the store sets the others. */
export const metadataSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 63, pattern: LABEL_PATTERN }),
    namespace: Type.String({ minLength: 1, maxLength: 63, pattern: LABEL_PATTERN }),
    labels: Type.Optional(mapOf(Type.String({ maxLength: 63 }), { maxProperties: 256 })),
    annotations: Type.Optional(annotations()),
  },
  closed,
)

/** The same for a cluster-scoped kind. */
export const clusterMetadataSchema = Type.Object(
  { ...metadataSchema.properties, namespace: Type.Enum([''], { type: 'string', default: '' }) },
  closed,
)

/** An object as written by users. */
export interface Manifest<K extends Kind = Kind> {
  readonly apiVersion: string
  readonly kind: K
  readonly metadata: Static<typeof metadataSchema>
  readonly spec: SpecOf<K>
}

/** An object as returned by a store, with defaults filled in. */
export interface Resource<K extends Kind = Kind> extends Manifest<K> {
  readonly metadata: Static<typeof metadataSchema> & {
    readonly uid: string
    /** Opaque; changes with every write. */
    readonly resourceVersion: string
    /** Increases by one with each change of the spec. */
    readonly generation: number
    /** RFC 3339. */
    readonly creationTimestamp: string
  }
  readonly status?: StatusOf<K>
}

/** Name of the file with the schema of a kind for editors. */
export function editorSchemaFile(kind: Kind): string {
  return `${kind.toLowerCase()}.schema.json`
}

export function isKind(text: unknown): text is Kind {
  return typeof text === 'string' && Object.hasOwn(kinds, text)
}
