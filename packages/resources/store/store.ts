import type { FieldProblem } from '../check.ts'
import type { Kind, Manifest, Resource, StatusOf } from '../kinds/kinds.ts'

/** Identifies an object. */
export interface Key {
  readonly namespace: string
  readonly name: string
}

export interface ListOptions {
  /** Absent: every namespace. */
  readonly namespace?: string
  /** Required labels with their values. */
  readonly labels?: Readonly<Record<string, string>>
  /** Maximum number of items per page; default: all. */
  readonly limit?: number
  /** `next` of the previous page. */
  readonly cursor?: string
}

export interface Page<K extends Kind> {
  /** Sorted by namespace and name. */
  readonly items: readonly Resource<K>[]
  /** Revision from which a watch continues. */
  readonly revision: string
  /** Null on the last page. */
  readonly next: string | null
}

export type WatchEvent<K extends Kind> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Resource<K>; readonly revision: string }
  /** End of the events so far. */
  | { readonly type: 'BOOKMARK'; readonly revision: string }
  /** The revision is too old or of another store: list again. The last event of its watch. */
  | { readonly type: 'GONE' }

export interface ApplyOptions {
  /** Owner of the write. An object written by another owner is a conflict, unless forced. */
  readonly owner: string
  readonly force?: boolean
  /** Returns the result without writing. */
  readonly dryRun?: boolean
  /** Required revision of the object; any other is a conflict. */
  readonly revision?: string
  /** Fails with a conflict when the object exists. */
  readonly create?: boolean
}

/** Preconditions of a status, as of an object. */
export type StatusOptions = Pick<ApplyOptions, 'dryRun' | 'revision'>

export type Conflict = { readonly kind: 'conflict'; readonly reason: string }
export type Invalid = { readonly kind: 'invalid'; readonly problems: readonly FieldProblem[] }
export type Applied<K extends Kind> = { readonly kind: 'applied'; readonly object: Resource<K> } | Conflict | Invalid

/** Preconditions of a removal. */
export interface RemoveOptions {
  readonly uid?: string
  readonly revision?: string
}

/**
 * Store of resources: YAML files, or the Kubernetes API. Spec and status are separate writes; `generation` increases with the spec only; revisions
 * are decimal and otherwise opaque; an apply without a change writes nothing.
 */
export interface ResourceStore {
  get<K extends Kind>(kind: K, key: Key): Promise<Resource<K> | null>
  list<K extends Kind>(kind: K, options: ListOptions): Promise<Page<K>>
  /** From a revision, or from null: then every object is first sent as ADDED, followed by a BOOKMARK. */
  watch<K extends Kind>(kind: K, from: string | null, signal: AbortSignal): AsyncIterable<WatchEvent<K>>
  apply<K extends Kind>(object: Manifest<K>, options: ApplyOptions): Promise<Applied<K>>
  /** Returns null when the object does not exist. */
  applyStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: StatusOf<K>,
    options?: StatusOptions,
  ): Promise<Applied<K> | null>
  /** Removing a missing object is not an error. */
  remove(kind: Kind, key: Key, options?: RemoveOptions): Promise<'removed' | 'missing' | Conflict>
  close(): void
}
