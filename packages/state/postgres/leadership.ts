import { type Clock, reasonOf } from '@plat/core'
import type { Client } from 'pg'
import type { Leadership, LedWork } from '../leadership.ts'
import { connectionOf } from './pool.ts'

/** First key of the advisory locks of leaders: an arbitrary constant. The second is derived from schema and job. */
const LEADER_LOCK = 0x706c6176
/** A leader that has not renewed for this many intervals is stuck, and its connection is terminated. */
const LEASE_INTERVALS = 5

/** How long the server may take to end the connection, in milliseconds. */
const END_MS = 1_000

export interface ElectionOptions {
  readonly dsn: string
  /** Quoted schema name: `"plat"`. */
  readonly schema: string
  /** Identifies this replica to people who read the table. */
  readonly holder: string
  /** Interval at which this replica tries to lead, renews, and reconnects. */
  readonly retryMs: number
  readonly clock: Clock
  warn(message: string): void
  /** Called when a replica appended to a journal, or may have while there was no connection. */
  onNotice(): void
  onLead(job: string, leads: boolean): void
}

interface Job {
  readonly name: string
  readonly work: LedWork
  /** Null while this replica does not lead. */
  term: { readonly epoch: number; readonly stop: AbortController; readonly done: Promise<void> } | null
}

/**
 * A dedicated connection that receives notifications of appends and holds the locks of leaders. A lock ends with its connection, which other
 * replicas terminate when a leader is stuck; an old leader unaware of that is refused by its epoch, which the next one has raised.
 */
export class Election implements Leadership {
  readonly #options: ElectionOptions
  readonly #jobs: Job[] = []
  readonly #stopTrying: () => void
  #client: Client | null = null
  #busy: Promise<void> | null = null
  #closed = false
  #isAwayReported = false

  constructor(options: ElectionOptions) {
    this.#options = options
    this.#stopTrying = options.clock.every(options.retryMs, () => this.look())
  }

  run(job: string, work: LedWork): void {
    this.#options.onLead(job, false)
    this.#jobs.push({ name: job, work, term: null })
  }

  /** Connects, tries to lead free jobs, and renews the others. */
  look(): void {
    if (this.#closed || this.#busy !== null) return
    this.#busy = this.#turn().finally(() => {
      this.#busy = null
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#stopTrying()
    await this.#busy
    const done = this.#jobs.map(({ term }) => term?.done)
    for (const job of this.#jobs) this.#resign(job)
    await Promise.all(done)
    const client = this.#client
    this.#client = null
    if (client !== null) await this.#end(client)
  }

  /** The server process may be paused, and then does not end the connection. */
  async #end(client: Client): Promise<void> {
    const cancel = this.#options.clock.after(END_MS, () => void client.connection.stream.destroy())
    await client.end().catch(() => {})
    cancel()
  }

  async #turn(): Promise<void> {
    const { warn } = this.#options
    try {
      const client = this.#client ?? (await this.#connect())
      for (const job of this.#jobs) {
        if (job.term !== null) await this.#look(client, job, job.term.epoch)
        else await this.#stand(client, job)
      }
      if (this.#isAwayReported) warn('the connection for leadership and notices is back')
      this.#isAwayReported = false
    } catch (error) {
      if (!this.#isAwayReported) warn(`this replica leads nothing: ${reasonOf(error)}`)
      this.#isAwayReported = true
      this.#lose(this.#client)
    }
  }

  async #connect(): Promise<Client> {
    const { Client } = await import('pg')
    const client = new Client(connectionOf(this.#options.dsn))
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', () => this.#options.onNotice())
    await client.connect()
    this.#client = client
    await client.query('LISTEN plat_state')
    // Notifications were missed while disconnected.
    this.#options.onNotice()
    return client
  }

  /** Becomes the leader, unless another replica is. */
  async #stand(client: Client, job: Job): Promise<void> {
    const { schema, holder, warn, onLead } = this.#options
    const lock = [LEADER_LOCK, `${schema}/${job.name}`]
    const { rows } = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1, hashtext($2)) AS got', lock)
    if (rows[0]?.got !== true) {
      await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
           AND classid = $1::integer::oid AND objid = hashtext($2)::oid AND objsubid = 2
           AND EXISTS (SELECT 1 FROM ${schema}.leader WHERE job = $3 AND until < clock_timestamp())`,
        [...lock, job.name],
      )
      return
    }
    const raised = await client.query<{ epoch: string }>(
      `INSERT INTO ${schema}.leader AS old (job, epoch, holder, until) VALUES ($1, 1, $2, ${this.#lease})
         ON CONFLICT (job) DO UPDATE SET epoch = old.epoch + 1, holder = EXCLUDED.holder, until = EXCLUDED.until
         RETURNING epoch`,
      [job.name, holder],
    )
    if (this.#client !== client || this.#closed) return
    const epoch = Number(raised.rows[0]?.epoch)
    const stop = new AbortController()
    const done = job.work(epoch, stop.signal).catch((error: unknown) => {
      warn(`${job.name}: ${reasonOf(error)}`)
    })
    job.term = { epoch, stop, done }
    onLead(job.name, true)
  }

  /** Renews leadership: the server may have dropped the lock silently. */
  async #look(client: Client, job: Job, epoch: number): Promise<void> {
    const { rowCount } = await client.query(
      `UPDATE ${this.#options.schema}.leader SET until = ${this.#lease} WHERE job = $1 AND epoch = $2`,
      [job.name, epoch],
    )
    if (rowCount !== 1) throw new Error(`another replica leads ${job.name} already`)
  }

  /** By the clock of the server. */
  get #lease(): string {
    return `clock_timestamp() + ${LEASE_INTERVALS * this.#options.retryMs} * interval '1 ms'`
  }

  #lose(client: Client | null): void {
    if (client === null || this.#client !== client) return
    this.#client = null
    for (const job of this.#jobs) this.#resign(job)
    // The server releases the locks with the connection.
    void client.end().catch(() => {})
  }

  #resign(job: Job): void {
    if (job.term === null) return
    job.term.stop.abort()
    job.term = null
    this.#options.onLead(job.name, false)
  }
}
