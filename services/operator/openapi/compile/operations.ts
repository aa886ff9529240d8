import { glob, isObject, type JsonObject } from '@plat/core'
import type { MCPServerSpec } from '@plat/resources'
import type { ApiTool } from '@plat/resources/rendered'
import { type ApiDocument, DocumentError } from './document.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Operations that are looked at. */
const MAX_OPERATIONS = 5000

/** Which operations become tools; absent: every GET. */
export type AllowRule = NonNullable<NonNullable<MCPServerSpec['openapi']>['allow']>[number]

/** An operation of a document. */
export interface Operation {
  readonly method: ApiTool['method']
  readonly path: string
  /** Null if the document gives none. */
  readonly operationId: string | null
  readonly tags: ReadonlySet<unknown>
  readonly pathItem: JsonObject
  readonly operation: JsonObject
}

/** Returns all operations of a document, in its order. Throws DocumentError. */
export function operationsOf(document: ApiDocument): readonly Operation[] {
  const operations: Operation[] = []
  for (const [path, node] of Object.entries(document.paths)) {
    if (!path.startsWith('/')) continue
    const pathItem = document.resolve(node)
    for (const name of METHODS) {
      const operation = pathItem[name]
      if (!isObject(operation)) continue
      if (operations.length >= MAX_OPERATIONS) throw new DocumentError(`has more than ${MAX_OPERATIONS} operations`)
      operations.push({
        method: methodOf(name),
        path,
        operationId: typeof operation.operationId === 'string' ? operation.operationId : null,
        tags: new Set(Array.isArray(operation.tags) ? operation.tags : []),
        pathItem,
        operation,
      })
    }
  }
  return operations
}

function methodOf(name: (typeof METHODS)[number]): ApiTool['method'] {
  return ({ get: 'GET', post: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const)[name]
}

export interface Selection {
  readonly operations: readonly Operation[]
  /** Indexes of rules that match nothing. */
  readonly unmatched: readonly number[]
}

/** Returns the operations that a rule allows. Without rules: those that read. */
export function selected(all: readonly Operation[], rules: readonly AllowRule[] | undefined): Selection {
  if (rules === undefined) return { operations: all.filter(({ method }) => method === 'GET'), unmatched: [] }
  const tests = rules.map(matcherOf)
  const unmatched = tests.flatMap((matches, index) => (all.some(matches) ? [] : [index]))
  return { operations: all.filter((operation) => tests.some((matches) => matches(operation))), unmatched }
}

/** A rule allows operations that write only if it names them in full or names their method. */
function matcherOf({ operationId, tag, path, methods }: AllowRule): (operation: Operation) => boolean {
  const isNamed = operationId !== undefined && !operationId.includes('*')
  const allowed: ReadonlySet<string> | null =
    methods !== undefined ? new Set(methods) : isNamed ? null : new Set(['GET'])
  const hasId = operationId === undefined ? null : glob(operationId)
  const hasPath = path === undefined ? null : glob(path)
  return (operation) =>
    (allowed === null || allowed.has(operation.method)) &&
    (hasId === null || (operation.operationId !== null && hasId(operation.operationId))) &&
    (tag === undefined || operation.tags.has(tag)) &&
    (hasPath === null || hasPath(operation.path))
}
