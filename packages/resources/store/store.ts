import type { FieldProblem } from '../check.ts'
import type { Kind, Manifest, Resource, StatusOf } from '../kinds/kinds.ts'

/** Names one object. */
export interface Key {
  readonly namespace: string
  readonly name: string
}

export interface ListOptions {
  /** Absent: every namespace. */
  readonly namespace?: string
  /** Labels that must all be there with these values. */
  readonly labels?: Readonly<Record<string, string>>
  /** Most items of one page; absent: all of them. */
  readonly limit?: number
  /** `next` of the page before. */
  readonly cursor?: string
}

export interface Page<K extends Kind> {
  /** Sorted by namespace and name. */
  readonly items: readonly Resource<K>[]
  /** Where a watch goes on. */
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
  /** Answers what would be, and writes nothing. */
  readonly dryRun?: boolean
  /** The object must stand at this revision; anything else is a conflict. */
  readonly revision?: string
  /** There must be no such object; one that is there is a conflict, whatever it says. */
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
 * Where resources live: YAML files, or the Kubernetes API. Spec and status are two writes; `generation` grows with the
 * spec only; revisions are decimal and otherwise opaque; an apply that changes nothing writes nothing.
 */
export interface ResourceStore {
  get<K extends Kind>(kind: K, key: Key): Promise<Resource<K> | null>
  list<K extends Kind>(kind: K, options: ListOptions): Promise<Page<K>>
  /** From a revision, or from null: then every object is first sent as ADDED, followed by a BOOKMARK. */
  watch<K extends Kind>(kind: K, from: string | null, signal: AbortSignal): AsyncIterable<WatchEvent<K>>
  apply<K extends Kind>(object: Manifest<K>, options: ApplyOptions): Promise<Applied<K>>
  /** Null: no such object. */
  applyStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: StatusOf<K>,
    options?: StatusOptions,
  ): Promise<Applied<K> | null>
  /** Removing what is not there is no error. */
  remove(kind: Kind, key: Key, options?: RemoveOptions): Promise<'removed' | 'missing' | Conflict>
  close(): void
}
