import type { ApiParts } from './api.ts'
import type { ClusterScope } from './cluster-scope.ts'
import type { Kinds } from './kinds.ts'

/** Common parts of the tools. */
export interface ClusterParts {
  readonly api: ApiParts
  readonly kinds: Kinds
  readonly reach: ClusterScope
  readonly maxListItems: number
  readonly maxLogLines: number
  readonly maxLogBytes: number
}
