import { DATA_CLASSES } from '@plat/resources/sovereignty'
import type { Hold, HoldItem } from '@plat/state'

/** Facts that stages determine about a call. A stage sees only the facts that it declares in `needs`. */
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

/** The authenticated caller, and the user on whose behalf it calls. */
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

/** Returns the key of a session, by which shares of pools are counted. */
export function callerOf(identity: Identity): string {
  return callerKeys.of(identity)
}

/**
 * Caches the key of each identity. Identities are cached with their tokens, whereas a string composed for each call would be copied and
 * hashed again in every lookup.
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

/** Returns the cached `agentOf` of a caller. */
export function callingAgentOf(identity: Identity): string {
  return agentKeys.of(identity)
}

/** Returns the key of an agent, for data that outlives sessions. */
export function agentOf({ tenant, namespace, agent }: Pick<Identity, 'tenant' | 'namespace' | 'agent'>): string {
  return `${tenant}/${namespace}/${agent}`
}

export interface Target {
  readonly kind: 'mcp' | 'model' | 'a2a' | 'builtin'
  /** `<ns>/<name>`, a route, or `plat-web`. */
  readonly key: string
  /** The name that policies match: `notes`, `llm/<route>`, `a2a/<ns>/<agent>`. */
  readonly server: string
  /** A second name of the server that names in rules and settings may use; absent: it has none. */
  readonly alias?: string
  /** A tool, a model, or `skill:<id>`. */
  readonly tool: string | null
  readonly trust: 'trusted' | 'untrusted'
  readonly dataClass: 'public' | 'internal' | 'confidential' | 'restricted'
  readonly jurisdiction: string | null
  readonly labels: ToolLabels
  /** True for a server that the gateway implements. */
  readonly builtin: boolean
  /** Requirements of a built-in server in addition to policy; absent: none. */
  readonly requirements?: CallRequirements
  /** The response has the results of a batch, one in each line; absent: it has not. */
  readonly results?: true
  /** Accounts of model providers that store what the request names, all of which the caller owns; absent: it names nothing. */
  readonly accounts?: ReadonlySet<string>
}

/** Requirements of a call to a built-in server, in addition to policy. */
export interface CallRequirements {
  /** Why the call needs an approval; null: it needs none. */
  readonly approval: string | null
  /** The arguments as shown to approvers if no redacted text is available; null: only their shape is shown. */
  readonly presentedArguments: string | null
  /** Limits in which the call counts, in addition to budgets and the rates of policy. */
  readonly holds: readonly HoldItem[]
}

/** Returns whether one of the server's names passes a test. */
export function isNamed({ server, alias }: Pick<Target, 'server' | 'alias'>, test: (name: string) => boolean): boolean {
  return test(server) || (alias !== undefined && test(alias))
}

/** The target before it is resolved, with the strictest properties. Metrics show its server name; no upstream has its key. */
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

export interface ToolPin {
  /** `sha256:<hex>` of the definition to which an approval is bound; null in mode `learn`, and if the tool was never listed. */
  readonly digest: string | null
  readonly mode: 'learn' | 'enforce'
  /** The call needs an approval, because the definition differs from the accepted one. */
  readonly approve: boolean
}

/** Label of a session that read content from outside (docs/spec/crds.md, `trust`). */
const UNTRUSTED_INPUT = 'untrusted-input'

/** Labels of every response of a target, by its `trust`, in addition to those of its tools. */
export const labelsByTrust: Readonly<Record<Target['trust'], ToolLabels>> = {
  trusted: { taints: [], clearTaints: [], sinks: [] },
  untrusted: { taints: [UNTRUSTED_INPUT], clearTaints: [], sinks: [] },
}

type DataClass = Target['dataClass']

const CLASS_PREFIX = 'data-class:'

/** Data classes with a label: a session that received data of one of them has its label. */
const LABELLED: readonly DataClass[] = ['confidential', 'restricted']

/** Returns the labels of a session that received data of this class. */
export function labelsOfClass(dataClass: DataClass): readonly string[] {
  return LABELLED.includes(dataClass) ? [`${CLASS_PREFIX}${dataClass}`] : []
}

/** Returns the data class of requests of a session with these labels: the highest of `base` and the classes that it received. */
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
  /** SHA-256 of the rule with the name of its policy, as hex, to which an approval is bound. Absent when no rule decided. */
  readonly ruleSha256?: string
  readonly reason: string
  /** Code of the refusal, if it is not `policy_denied`. */
  readonly code?: 'tainted_sink'
  /** Revision of the policies that decided: `sha256:<hex>`. */
  readonly revision: string
  readonly engines: readonly { readonly name: 'native' | 'cedar' | 'rego'; readonly action: string }[]
  /** Verdicts of policies in `dryRun`. */
  readonly wouldBe: readonly { readonly policy: string; readonly action: string }[]
  /** Rate limits of the matching rules, reserved by the stage `reserve`. */
  readonly rates: readonly HoldItem[]
}

/** The decision in the record of a call for which no policy is evaluated: the scope of the token permits it. */
export const scopeDecision: Decision = {
  action: 'allow',
  policy: null,
  rule: null,
  reason: 'scope',
  revision: '',
  engines: [],
  wouldBe: [],
  rates: [],
}

/** The redacted text of the call, as shown to approvers and classifiers. */
export interface RedactedView {
  readonly text: string
  readonly hits: number
}

export interface ApprovalUse {
  readonly approvalId: string
  readonly by: readonly string[]
}
