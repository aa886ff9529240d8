import { EventStream, type StreamState } from '../api/events.ts'
import { after } from './clock.ts'

/** Events that arrive together reload a page once. */
const TOGETHER_MS = 150
/** The gateway reports every second that calls ended: pages that show calls reload less often. */
const CALLS_MS = 3_000
/** Pages reload this often without events, and rarely with them. */
const POLL_MS = 3_000
const SLOW_POLL_MS = 30_000

type Listener = () => void

/** Reloads what is shown when the gateway reports a change of it. */
export class Live {
  readonly #listeners = new Map<Listener, ReadonlySet<string>>()
  readonly #states = new Set<Listener>()
  readonly #stream: EventStream
  readonly #due = new Set<string>()
  #isDue = false
  #hasCalls = false
  #cancelPoll = () => {}
  state: StreamState = 'connecting'

  constructor(url: string) {
    this.#stream = new EventStream({
      url,
      event: ({ name }) => this.#reported(name.split('.')[0] ?? name),
      state: (state) => this.#setState(state),
    })
    this.#poll()
    window.addEventListener('online', this.#network)
    window.addEventListener('offline', this.#network)
  }

  /** Calls back after changes of one of these topics. Returns a function that ends this. */
  on(topics: readonly string[], listener: Listener): () => void {
    this.#listeners.set(listener, new Set(topics))
    return () => void this.#listeners.delete(listener)
  }

  /** Calls back when `state` changes. */
  onState(listener: Listener): () => void {
    this.#states.add(listener)
    return () => void this.#states.delete(listener)
  }

  close(): void {
    window.removeEventListener('online', this.#network)
    window.removeEventListener('offline', this.#network)
    this.#stream.close()
    this.#cancelPoll()
  }

  readonly #network = (event: Event): void => this.#stream.networkChanged(event.type === 'online')

  #setState(state: StreamState): void {
    const back = state === 'live' && this.state === 'offline'
    this.state = state
    for (const listener of this.#states) listener()
    // Changes while the connection was broken may be older than the events that the gateway still has.
    if (back) this.#changed('*')
    this.#poll()
  }

  #poll(): void {
    this.#cancelPoll()
    this.#cancelPoll = after(this.state === 'live' ? SLOW_POLL_MS : POLL_MS, () => {
      if (!document.hidden) this.#changed('*')
      this.#poll()
    })
  }

  #reported(topic: string): void {
    if (topic !== 'calls') this.#changed(topic === 'reset' ? '*' : topic)
    else if (!this.#hasCalls) {
      this.#hasCalls = true
      after(CALLS_MS, () => {
        this.#hasCalls = false
        this.#changed('calls')
      })
    }
  }

  #changed(topic: string): void {
    this.#due.add(topic)
    if (this.#isDue) return
    this.#isDue = true
    after(TOGETHER_MS, () => {
      const due = new Set(this.#due)
      this.#due.clear()
      this.#isDue = false
      for (const [listener, topics] of this.#listeners)
        if (due.has('*') || [...topics].some((one) => due.has(one))) listener()
    })
  }
}
