import type { Events } from '../dialects/dialect.ts'
import type { ModelFrame } from '../frame.ts'
import { EventTemplate, type Words } from './template.ts'

/** Kinds of plain events that a provider sends, at most; of more, the one that matched longest ago is forgotten. */
const MAX_TEMPLATES = 8

/** The kinds of plain events that an endpoint sends in one dialect, the last that matched first. */
export class EventTemplates {
  readonly #known: EventTemplate[] = []

  /** Returns where the event at `from` ends if it is of a known kind, else -1. Caller must know that the bytes are UTF-8. */
  endOf(words: Words, from: number): number {
    const known = this.#known
    for (let index = 0; index < known.length; index++) {
      const template = known[index]
      const end = template?.endOf(words, from) ?? -1
      if (template === undefined || end === -1) continue
      if (index > 0) {
        known.splice(index, 1)
        known.unshift(template)
      }
      return end
    }
    return -1
  }

  /** Caller must pass the frame of a plain event. */
  learn(frame: ModelFrame): void {
    const template = EventTemplate.of(frame)
    if (template === null) return
    this.#known.unshift(template)
    if (this.#known.length > MAX_TEMPLATES) this.#known.pop()
  }
}

/** The templates of all endpoints, each as long as its endpoint is served. */
export class TemplateCache {
  readonly #byEndpoint = new WeakMap<object, Map<Events, EventTemplates>>()

  /** Each dialect has separate templates, since an event that is valid in one dialect need not be valid in another. */
  of(endpoint: object, events: Events): EventTemplates {
    const byEvents = this.#byEndpoint.getOrInsertComputed(endpoint, () => new Map())
    return byEvents.getOrInsertComputed(events, () => new EventTemplates())
  }
}
