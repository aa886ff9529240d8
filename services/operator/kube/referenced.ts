import { type KubernetesApi, KubernetesApiError, member, textOf } from '@plat/kubernetes'
import type { ReferencedTexts } from '../render/declared.ts'
import { OVER_SHARE } from '../render/size/shares.ts'

/** Requests at the same time. */
const AT_ONCE = 8
/** Objects of one namespace that one call of `read` or `refresh` requests, so that no namespace delays others by how much it names. */
const NAMESPACE_SHARE = 100
/** Bytes of one namespace that are kept: the outputs of all namespaces together hold no more. */
const NAMESPACE_BYTES = 1024 * 1024

/** Statuses for objects that do not exist, and for those that the operator may not read. */
const ABSENT: ReadonlySet<number> = new Set([403, 404])

export interface ReferencedParts {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly plural: 'secrets' | 'configmaps'
}

export interface ReadTexts extends ReferencedTexts {
  /** False while objects beyond the share of a namespace are left for the next call. */
  readonly isComplete: boolean
}

export interface Refreshed {
  /** Whether a value is not as it was. */
  readonly hasChanged: boolean
  /** Why objects could not be read. */
  readonly errors: readonly unknown[]
}

/** An object as it was last read. */
interface Held {
  /** Every key that was looked for; null: it is not there. */
  readonly texts: ReadonlyMap<string, string | null>
  readonly bytes: number
  /** Its texts were not kept: its namespace has no room left. */
  readonly isOver: boolean
}

/**
 * Secrets or ConfigMaps that resources name. Each object is read once by its name, which needs no right to list or watch them, and again by
 * `refresh`. Names are `<namespace>/<name>`; keys are `<namespace>/<name>/<key>`.
 */
export class ReferencedObjects {
  readonly #parts: ReferencedParts
  /** The one that was read longest ago comes first. */
  readonly #held = new Map<string, Held>()
  /** Keys that are wanted, by object. */
  #wanted: ReadonlyMap<string, ReadonlySet<string>> = new Map()
  /** By namespace. */
  readonly #bytes = new Map<string, number>()
  /** Whether everything that was wanted has been read once. */
  #isComplete = false

  constructor(parts: ReferencedParts) {
    this.#parts = parts
  }

  /**
   * Returns the values of keys, reading objects that are not known yet: at first all, later a share of each namespace. Throws an `KubernetesApiError`
   * when an object cannot be read.
   */
  async read(keys: Iterable<string>, signal: AbortSignal): Promise<ReadTexts> {
    this.#wanted = namesByObject(keys)
    for (const object of [...this.#held.keys()]) if (!this.#wanted.has(object)) this.#drop(object)
    const unknown = [...this.#wanted].flatMap(([object, names]) => (this.#knows(object, names) ? [] : [object]))
    await this.#each(this.#isComplete ? shareOf(unknown) : unknown, (object) => this.#read(object, signal))
    this.#isComplete = true
    return this.#texts()
  }

  /** Reads a share of each namespace again, what was read longest ago first. What cannot be read stays as it was. */
  async refresh(signal: AbortSignal): Promise<Refreshed> {
    let hasChanged = false
    const errors: unknown[] = []
    await this.#each(shareOf([...this.#held.keys()]), async (object) => {
      const before = this.#held.get(object)
      // As many failures as requests at the same time: the API server is to blame, not the objects.
      if (before === undefined || errors.length >= AT_ONCE) return
      try {
        await this.#read(object, signal)
        if (!isSame(before, this.#held.get(object))) hasChanged = true
      } catch (error) {
        if (signal.aborted) throw error
        errors.push(error)
        this.#moveToEnd(object)
      }
    })
    return { hasChanged, errors }
  }

  #knows(object: string, names: ReadonlySet<string>): boolean {
    const texts = this.#held.get(object)?.texts
    return texts !== undefined && [...names].every((name) => texts.has(name))
  }

  async #read(object: string, signal: AbortSignal): Promise<void> {
    const values = await this.#values(object, signal)
    const names = this.#wanted.get(object)
    this.#drop(object)
    if (names === undefined) return
    const texts = new Map([...names].map((name) => [name, values.get(name) ?? null]))
    const bytes = [...texts.values()].reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0)
    const namespace = namespaceOf(object)
    const before = this.#bytes.get(namespace) ?? 0
    const isOver = before + bytes > NAMESPACE_BYTES
    if (!isOver) this.#bytes.set(namespace, before + bytes)
    const none = new Map([...names].map((name) => [name, null]))
    this.#held.set(object, isOver ? { texts: none, bytes: 0, isOver } : { texts, bytes, isOver })
  }

  #moveToEnd(object: string): void {
    const held = this.#held.get(object)
    if (held !== undefined && this.#held.delete(object)) this.#held.set(object, held)
  }

  #drop(object: string): void {
    const namespace = namespaceOf(object)
    const left = (this.#bytes.get(namespace) ?? 0) - (this.#held.get(object)?.bytes ?? 0)
    if (left > 0) this.#bytes.set(namespace, left)
    else this.#bytes.delete(namespace)
    this.#held.delete(object)
  }

  #texts(): ReadTexts {
    const texts = new Map<string, string>()
    const withheld = new Map<string, string>()
    let isComplete = true
    for (const [object, names] of this.#wanted) {
      const held = this.#knows(object, names) ? this.#held.get(object) : undefined
      if (held === undefined) isComplete = false
      for (const name of names) {
        const text = held?.texts.get(name) ?? null
        if (text !== null) texts.set(`${object}/${name}`, text)
        else if (held === undefined) withheld.set(`${object}/${name}`, 'is not read yet')
        else if (held.isOver) withheld.set(`${object}/${name}`, OVER_SHARE)
      }
    }
    return { texts, withheld, isComplete }
  }

  /** Works on several objects at the same time; after the first failure no further one begins. */
  async #each(objects: readonly string[], work: (object: string) => Promise<void>): Promise<void> {
    const queue = objects.toReversed()
    const worker = async () => {
      for (let object = queue.pop(); object !== undefined; object = queue.pop()) {
        await work(object).catch((error: unknown) => {
          queue.length = 0
          throw error
        })
      }
    }
    const ended = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, queue.length) }, worker))
    for (const one of ended) if (one.status === 'rejected') throw one.reason
  }

  async #values(object: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { api, plural } = this.#parts
    const [namespace = '', name = ''] = object.split('/')
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}`
    try {
      const { body } = await api.ask({ method: 'GET', path, signal })
      const data = member(body, 'data')
      const decode = (text: string) => (plural === 'secrets' ? Buffer.from(text, 'base64').toString('utf8') : text)
      return new Map(Object.keys(data).map((key) => [key, decode(textOf(data, key))]))
    } catch (error) {
      if (error instanceof KubernetesApiError && ABSENT.has(error.status)) return new Map()
      throw error
    }
  }
}

function namesByObject(keys: Iterable<string>): Map<string, Set<string>> {
  const names = new Map<string, Set<string>>()
  for (const key of keys) {
    const end = key.lastIndexOf('/')
    const object = key.slice(0, end)
    const known = names.get(object)
    if (known === undefined) names.set(object, new Set([key.slice(end + 1)]))
    else known.add(key.slice(end + 1))
  }
  return names
}

function namespaceOf(object: string): string {
  return object.slice(0, object.indexOf('/'))
}

/** The first objects of each namespace. */
function shareOf(objects: readonly string[]): readonly string[] {
  const shares = [...Map.groupBy(objects, namespaceOf).values()]
  return shares.flatMap((own) => own.slice(0, NAMESPACE_SHARE))
}

function isSame(before: Held, now: Held | undefined): boolean {
  if (now === undefined || before.isOver !== now.isOver || before.texts.size !== now.texts.size) return false
  return [...before.texts].every(([name, text]) => now.texts.get(name) === text)
}
