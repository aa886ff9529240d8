import type { PolicyEntry } from '@plat/resources/rendered'
import type { UpstreamAuth } from '../../call/index.ts'

/** Policies in force. */
export interface ListedPolicies {
  readonly revision: string
  readonly entries: readonly PolicyEntry[]
  readonly cedars: readonly { readonly policy: string; readonly fault: string | null }[]
}

export interface ListedServer {
  readonly namespace: string | null
  readonly sharedWith: readonly string[]
  readonly isImplicit: boolean
  readonly upstream: {
    readonly key: string
    readonly url: string
    readonly stdio: boolean
    readonly timeoutSeconds: number | null
    readonly protocolVersions: readonly string[] | null
    readonly trust: string
    readonly dataClass: string
    readonly jurisdiction: string | null
    readonly auth: Pick<UpstreamAuth, 'type'>
    readonly pins: { readonly mode: string } | null
    readonly dlpProfile: string | null
    readonly builtin: object | null
  }
}

export interface ListedEndpoint {
  readonly key: string
  readonly provider: string
  /** Origin. */
  readonly label: string
  readonly jurisdiction: string | null
  readonly region: string | null
  readonly weight: number
  readonly requestsPerMinute: number | null
  modelFor(requested: string | null): string | null
}

export interface ListedRoute {
  readonly name: string
  readonly endpoints: readonly ListedEndpoint[]
  readonly aliases: readonly string[]
  readonly namespaces: ReadonlySet<string>
  /** `<ns>/<agent>` or `<agent>`; empty for any. */
  readonly agents: ReadonlySet<string>
  readonly balancing: string
  readonly dataClass: string
  readonly preferJurisdiction: string | null
  readonly dlpProfile: string | null
  readonly providerTools: ReadonlySet<string>
  readonly contextTokens: number | null
  readonly maxTokensPerRequest: number | null
  readonly tokensPerMinute: number | null
}

export interface ListedAgent {
  readonly namespace: string
  readonly name: string
  readonly endpoint: string
  readonly trust: string
  readonly protocolVersion: string
  readonly streaming: boolean
  readonly jurisdiction: string | null
  readonly description: string
  readonly version: string
  readonly skills: readonly { readonly id: string }[]
}

export interface EndpointHealth {
  readonly isReady: boolean
  readonly failures: number
  readonly retryInMs: number | null
  readonly latencies: readonly {
    readonly kind: string
    readonly averageMs: number
    readonly pending: number
    readonly agoMs: number
  }[]
}

interface CallerName {
  readonly tenant: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

export interface SystemHealth {
  /** Whether the ledger can be written. */
  readonly ledger: boolean
  /** Why the state database cannot be used; null: it can. */
  readonly state: string | null
  readonly sinks: readonly { readonly name: string; readonly lag: number; readonly isFailing: boolean }[]
}

/** Lists of the features: policies, servers, routes and agents in force. */
export interface InventoryParts {
  policies(): ListedPolicies
  /** Calls that a rule decided; null: the default of the policy. */
  hits(policy: string, rule: string | null): { readonly hits: number; readonly since: string }
  servers(): readonly ListedServer[]
  models(): readonly ListedRoute[]
  /** Health of the endpoints in force, by key. */
  health(): ReadonlyMap<string, EndpointHealth>
  /** Agents that others may call. */
  agents(): readonly ListedAgent[]
  /** Calls in progress. */
  readonly live: { each(visit: (call: { readonly identity: CallerName; readonly long: boolean }) => void): void }
  /** Names of what makes `/readyz` fail. */
  problems(): readonly string[]
  /** Health of the parts that all namespaces share. */
  system(): SystemHealth
  /** Why the last request to an MCP server could not be sent, by key; null: it could, or none was made. */
  unreachable(server: string): string | null
}
