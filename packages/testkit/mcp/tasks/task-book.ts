import { randomUUID } from 'node:crypto'

type Json = Readonly<Record<string, unknown>>

/** A tool of the fixture: sync, able to run as a task, or only as a task. */
interface TaskTool {
  readonly support: 'forbidden' | 'optional' | 'required'
  /** Starts the work of a task. */
  start(task: FixtureTask, args: Json): void
}

const text = (value: string) => ({ content: [{ type: 'text', text: value }] })
const question = (message: string) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } } } },
})

/** Milliseconds that short work takes. */
const SHORT_MS = 200

/** The tools that the scenarios of the tasks extension name. */
export const taskTools: Readonly<Record<string, TaskTool>> = {
  greet: { support: 'forbidden', start: (task, { name }) => task.complete(text(`Hello, ${name}!`)) },
  slow_compute: {
    support: 'optional',
    start: (task, { seconds }) => task.after(Number(seconds) * 1000, () => task.complete(text('computed'))),
  },
  failing_job: {
    support: 'required',
    start: (task) => task.after(SHORT_MS, () => task.complete({ ...text('the job failed'), isError: true })),
  },
  protocol_error_job: {
    support: 'required',
    start: (task) => task.after(SHORT_MS, () => task.fail({ code: -32603, message: 'the job crashed' })),
  },
  confirm_delete: { support: 'required', start: (task) => task.ask({ confirm: question('Delete it?') }) },
  multi_input: {
    support: 'required',
    start: (task) => task.ask({ first: question('First?'), second: question('Second?') }),
  },
  test_tool_with_task: {
    support: 'required',
    start: (task, { user }) => task.after(SHORT_MS, () => task.complete(text(`Hello, ${user}!`))),
  },
}

/** A task of the tasks extension of revision 2026-07-28. */
export class FixtureTask {
  readonly id = randomUUID()
  readonly #createdAt = new Date().toISOString()
  readonly #onChange: (task: FixtureTask) => void
  #lastUpdatedAt = this.#createdAt
  #status = 'working'
  #more: Json = {}
  #timer: NodeJS.Timeout | undefined

  constructor(onChange: (task: FixtureTask) => void) {
    this.#onChange = onChange
  }

  get status(): string {
    return this.#status
  }

  /** Returns the task with its state, as `tasks/get` and notifications state it. */
  detailed(): Json {
    return { ...this.seed(), ...this.#more }
  }

  seed(): Json {
    const times = { createdAt: this.#createdAt, lastUpdatedAt: this.#lastUpdatedAt }
    return { taskId: this.id, status: this.#status, ...times, ttlMs: 60_000, pollIntervalMs: 100 }
  }

  after(ms: number, work: () => void): void {
    if (ms === 0) work()
    else this.#timer = setTimeout(work, ms)
  }

  complete(result: Json): void {
    this.#become('completed', { result })
  }

  fail(error: Json): void {
    this.#become('failed', { error })
  }

  ask(inputRequests: Json): void {
    this.#become('input_required', { inputRequests })
  }

  /** Ends the task with all responses, once there are no further requests. */
  answer(responses: Json): void {
    const open = Object.entries(this.#more.inputRequests ?? {}).filter(([name]) => responses[name] === undefined)
    if (this.#status !== 'input_required') return
    if (open.length > 0) this.#become('input_required', { inputRequests: Object.fromEntries(open) })
    else this.complete(text('done'))
  }

  cancel(): void {
    this.#become('cancelled', {})
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #become(status: string, more: Json): void {
    if (['completed', 'failed', 'cancelled'].includes(this.#status)) return
    if (status !== 'input_required') clearTimeout(this.#timer)
    this.#status = status
    this.#more = more
    this.#lastUpdatedAt = new Date().toISOString()
    this.#onChange(this)
  }
}
