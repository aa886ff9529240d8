/** Time limit of an operation on a slot, in milliseconds: a state has hundreds of megabytes. */
const OPERATION_MS = 300_000

/** Slots of llama.cpp's server, by its REST API (tools/server/README.md, "POST /slots/{id_slot}"). */
export class Slots {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>

  constructor(url: string, apiKey: string | null) {
    this.#url = url
    this.#headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
  }

  /** Returns their number (`--parallel`). Rejects if the server does not respond. */
  async count(): Promise<number> {
    const response = await fetch(`${this.#url}/props`, { headers: this.#headers })
    const { total_slots: count } = Object(await response.json())
    if (!Number.isInteger(count) || count < 1) throw new Error(`${this.#url}/props does not state total_slots`)
    return count
  }

  /** Writes the state of a slot to a file of `--slot-save-path`. */
  async save(slot: number, filename: string): Promise<void> {
    await this.#act(slot, 'save', { filename })
  }

  /** Returns false if the server cannot use the file, as one of another model. */
  async restore(slot: number, filename: string): Promise<boolean> {
    return await this.#act(slot, 'restore', { filename }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof SlotError && error.status < 500) return false
        throw error
      },
    )
  }

  async erase(slot: number): Promise<void> {
    await this.#act(slot, 'erase', {})
  }

  /** Sends a request of OpenAI's API. */
  send(path: string, body: string, signal: AbortSignal): Promise<Response> {
    const headers = { ...this.#headers, 'content-type': 'application/json' }
    return fetch(this.#url + path, { method: 'POST', headers, body, signal })
  }

  models(): Promise<Response> {
    return fetch(`${this.#url}/v1/models`, { headers: this.#headers })
  }

  async #act(slot: number, action: string, body: object): Promise<void> {
    const response = await fetch(`${this.#url}/slots/${slot}?action=${action}`, {
      method: 'POST',
      headers: { ...this.#headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(OPERATION_MS),
    })
    await response.body?.cancel()
    if (response.status !== 200) throw new SlotError(action, response.status)
  }
}

class SlotError extends Error {
  readonly status: number

  constructor(action: string, status: number) {
    super(`llama.cpp responded ${status} to ${action}`)
    this.status = status
  }
}
