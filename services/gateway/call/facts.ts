import { DATA_CLASSES } from '@plat/resources/sovereignty'
import type { Hold, HoldItem } from '@plat/state'

/** Everything that stages can learn about a call. A stage sees only the facts that it declared. */
export interface Facts {
  identity: Identity
  target: Target
  pin: ToolPin | null
  taints: TaintView
  decision: Decision
  redacted: RedactedView | null
  approval: ApprovalUse | null
  hold: Hold | null
}

export type Fact = keyof Facts

/** A session by its three names. */
export interface SessionRef {
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** Who is calling, and for whom. */
export interface Identity {
  readonly tenant: string
  /** SPIFFE trust domain of the session; empty for callers of other issuers. */
  readonly trustDomain: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string | null
  readonly groups: readonly string[]
  /** How the user was bound to the session. */
  readonly verified: 'requester' | 'trustedCreator' | 'idToken' | null
  readonly tier: string
  readonly scopes: ReadonlySet<string>
  readonly jti: string
  /** Parent and delegator `jti`s: revoking any of them revokes this. */
  readonly ancestors: readonly string[]
  /** Sessions that delegated to this one, nearest first. Revoking any of them revokes this, and this has their taints. */
  readonly delegators: readonly SessionRef[]
  /** Sessions that this one, or a delegator, was forked from. Revoking any of them revokes this. */
  readonly forkedFrom: readonly SessionRef[]
  /** Agents of the `act` chain, nearest first. */
  readonly chain: readonly string[]
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Thumbprint of the DPoP key that the token is bound to. */
  readonly jkt: string | null
  readonly issuer: string
  readonly forkRoot: string | null
  readonly inheritedTaints: readonly string[]
}

/** The key under which a caller's shares of pools are counted: its session. */
export function callerOf(identity: Identity): string {
  return callerKeys.of(identity)
}

/**
 * Composes the key of an identity once. An identity is kept with its token, while a text that is composed for each call is copied and hashed
 * again by every look-up.
 */
class IdentityKeys {
  readonly #keys = new WeakMap<Identity, string>()
  readonly #compose: (identity: Identity) => string

  constructor(compose: (identity: Identity) => string) {
    this.#compose = compose
  }

  of(identity: Identity): string {
    const known = this.#keys.get(identity)
    if (known !== undefined) return known
    const key = this.#compose(identity)
    this.#keys.set(identity, key)
    return key
  }
}

const callerKeys = new IdentityKeys((identity) => `${agentOf(identity)}/${identity.session}`)
const agentKeys = new IdentityKeys(agentOf)

/** `agentOf` of a caller, for each of whose calls it is needed. */
export function callingAgentOf(identity: Identity): string {
  return agentKeys.of(identity)
}

/** The same for what outlives sessions: the agent. */
export function agentOf({ tenant, namespace, agent }: Pick<Identity, 'tenant' | 'namespace' | 'agent'>): string {
  return `${tenant}/${namespace}/${agent}`
}

/** What is called. */
export interface Target {
  readonly kind: 'mcp' | 'model' | 'a2a' | 'builtin'
  /** `<ns>/<name>`, a route, or `plat-web`. */
  readonly key: string
  /** What policies match: `notes`, `llm/<route>`, `a2a/<ns>/<agent>`. */
  readonly server: string
  /** A tool, a model, or `skill:<id>`. */
  readonly tool: string | null
  readonly trust: 'trusted' | 'untrusted'
  readonly dataClass: 'public' | 'internal' | 'confidential' | 'restricted'
  readonly jurisdiction: string | null
  readonly labels: ToolLabels
  /** The gateway is the server itself. */
  readonly builtin: boolean
  /** What the gateway, where it is the server itself, asks of this call beside the verdict of policy; absent: nothing. */
  readonly requirements?: CallRequirements
}

/** What must be there before a call of a server of the gateway itself passes, whatever policy allows. */
export interface CallRequirements {
  /** Why a person must let it through; null: nobody must. */
  readonly approval: string | null
  /** What approvers are shown of its arguments where nobody else has made them fit to be shown; null: their shape. */
  readonly presentedArguments: string | null
  /** What it counts in, beside budgets and the rates of policy. */
  readonly holds: readonly HoldItem[]
}

/** The target before names are looked up: it trusts nothing. Metrics show its server; no upstream has its key. */
export const unresolved: Target = {
  kind: 'builtin',
  key: '',
  server: 'unknown',
  tool: null,
  trust: 'untrusted',
  dataClass: 'restricted',
  jurisdiction: null,
  labels: { taints: [], clearTaints: [], sinks: [] },
  builtin: false,
}

/** Taint labels that a tool adds, clears, or is a sink for. */
export interface ToolLabels {
  readonly taints: readonly string[]
  readonly clearTaints: readonly string[]
  readonly sinks: readonly string[]
}

/** What is known of the definition of the tool that is called. */
export interface ToolPin {
  /** `sha256:<hex>` of the definition that an approval is bound to; null in mode `learn`, and where nobody was offered one. */
  readonly digest: string | null
  readonly mode: 'learn' | 'enforce'
  /** A person must let this call through: the definition is not the one that somebody agreed to. */
  readonly approve: boolean
}

/** Label of a session that read content from outside (docs/spec/crds.md, `trust`). */
const UNTRUSTED_INPUT = 'untrusted-input'

/** What a response of a target brings by the target's `trust` alone, whatever its tools say. */
export const labelsByTrust: Readonly<Record<Target['trust'], ToolLabels>> = {
  trusted: { taints: [], clearTaints: [], sinks: [] },
  untrusted: { taints: [UNTRUSTED_INPUT], clearTaints: [], sinks: [] },
}

type DataClass = Target['dataClass']

const CLASS_PREFIX = 'data-class:'

/** Classes above what every session handles: a session that received data of one has its label. */
const LABELLED: readonly DataClass[] = ['confidential', 'restricted']

/** Labels of a session that received data of this class. */
export function labelsOfClass(dataClass: DataClass): readonly string[] {
  return LABELLED.includes(dataClass) ? [`${CLASS_PREFIX}${dataClass}`] : []
}

/** The class of what a session with these labels sends: the highest of `base` and of what it received. */
export function classOfSession(base: DataClass, labels: readonly string[]): DataClass {
  let highest = base
  for (const one of LABELLED) {
    const isHigher = DATA_CLASSES.indexOf(one) > DATA_CLASSES.indexOf(highest)
    if (isHigher && labels.includes(`${CLASS_PREFIX}${one}`)) highest = one
  }
  return highest
}

export interface TaintView {
  readonly labels: readonly string[]
}

export interface Decision {
  readonly action: 'allow' | 'deny' | 'require_approval'
  readonly policy: string | null
  readonly rule: string | null
  /** SHA-256 of the whole rule with its policy's name, as hex: what an approval is bound to. Absent when no rule decided. */
  readonly ruleSha256?: string
  readonly reason: string
  /** Of the refusal, where it is not `policy_denied`. */
  readonly code?: 'tainted_sink'
  /** Revision of the policies that decided: `sha256:<hex>`. */
  readonly revision: string
  readonly engines: readonly { readonly name: 'native' | 'cedar' | 'rego'; readonly action: string }[]
  /** What policies in `dryRun` would have said. */
  readonly wouldBe: readonly { readonly policy: string; readonly action: string }[]
  /** Rate limits of the matching rules: only named here, taken by `reserve`. */
  readonly rates: readonly HoldItem[]
}

/** The call as people and classifiers may see it. */
export interface RedactedView {
  readonly text: string
  readonly hits: number
}

/** The grant that a released call used. */
export interface ApprovalUse {
  readonly approvalId: string
  readonly by: readonly string[]
}
