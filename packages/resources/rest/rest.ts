import { API_VERSION, isClusterKind, type Resource } from '../kinds/kinds.ts'

/** The authenticated caller. */
export interface RestCaller {
  /** As in the ledger: `user:ada`. */
  readonly name: string
  readonly groups: readonly string[]
  /** Returns whether the caller may read or write objects of this namespace; null: of all namespaces, and cluster-scoped ones. */
  may(what: 'read' | 'write', namespace: string | null): boolean
}

/** A request, from any transport. */
export interface RestRequest {
  readonly method: string
  /** Without the query, as sent. */
  readonly path: string
  readonly query: URLSearchParams
  /** The header; empty: everything is accepted. */
  readonly accept: string
  readonly contentType: string
  /** Empty without a body. */
  readonly body: Uint8Array
  readonly caller: RestCaller
  /** Ends a watch. */
  readonly signal: AbortSignal
}

/** A response: a JSON value, or lines of a watch. */
export interface RestResponse {
  readonly status: number
  readonly contentType: string
  /** Sent as `Warning` headers (RFC 9111; printed by Kubernetes clients). */
  readonly warnings: readonly string[]
  readonly body: object | AsyncIterable<string>
  /** The attempted change, such as `PATCH agents/:name`; null for a read, or a successful dry run. */
  readonly change: string | null
}

export const JSON_TYPE = 'application/json'

export function okResponse(body: object, more: Partial<RestResponse> = {}): RestResponse {
  return { status: 200, contentType: JSON_TYPE, warnings: [], change: null, body, ...more }
}

/** Returns an object as sent to clients: cluster-scoped ones have no namespace. */
export function wireOf({ apiVersion, kind, metadata, spec, status }: Resource): Record<string, unknown> {
  const { namespace, ...rest } = metadata
  return {
    apiVersion,
    kind,
    metadata: isClusterKind(kind) ? rest : { ...rest, namespace },
    spec,
    ...(status !== undefined && { status }),
  }
}

export function listOf(kind: string, items: readonly Resource[], metadata: object): object {
  return { apiVersion: API_VERSION, kind: `${kind}List`, metadata, items: items.map(wireOf) }
}
