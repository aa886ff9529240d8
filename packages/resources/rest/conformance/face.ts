import assert from 'node:assert/strict'
import { isObject } from '@plat/core'

/** Response of an API. */
export interface FaceResponse {
  readonly status: number
  readonly body: unknown
  /** `Warning` headers. */
  readonly warnings: readonly string[]
}

export interface AskOptions {
  readonly body?: unknown
  /** Media type of the body; default: JSON. */
  readonly type?: string
  readonly accept?: string
}

/** An API without objects of these kinds. */
export interface Face {
  ask(method: string, path: string, options?: AskOptions): Promise<FaceResponse>
  /** Yields the objects of a watch until the loop over them ends. */
  watch(path: string): AsyncIterable<unknown>
  close(): Promise<void>
}

export const GROUP = '/apis/plat.dev/v1alpha1'
export const SERVERS = `${GROUP}/namespaces/default/mcpservers`
export const POLICIES = `${GROUP}/sovereigntypolicies`
export const MERGE = 'application/merge-patch+json'
export const JSON_PATCH = 'application/json-patch+json'
export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

export function server(name: string, more: object = {}, metadata: object = {}): object {
  return {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'MCPServer',
    metadata: { name, namespace: 'default', ...metadata },
    spec: { url: `http://${name}.example/mcp`, ...more },
  }
}

/** Returns a nested member: `at(body, 'metadata', 'name')`. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (deep, step) => (Array.isArray(deep) || isObject(deep) ? Object(deep)[step] : undefined),
    value,
  )
}

export function list(value: unknown): readonly unknown[] {
  assert.ok(Array.isArray(value), JSON.stringify(value))
  return value
}

export const names = (body: unknown) => list(at(body, 'items')).map((item) => at(item, 'metadata', 'name'))

export type Promised = (what: string, check: (face: Face) => Promise<void>) => void

export async function created(face: Face, object: object, where = SERVERS): Promise<unknown> {
  const { status, body } = await face.ask('POST', where, { body: object })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}
