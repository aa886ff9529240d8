import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from '../../local.ts'
import { FixtureTask, taskTools } from './task-book.ts'

type Json = Readonly<Record<string, unknown>>

const EXTENSION = 'io.modelcontextprotocol/tasks'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

/** The part of a server of revision 2026-07-28 that has the tasks extension. */
export class TaskFixture {
  readonly #tasks = new Map<string, FixtureTask>()
  readonly #listeners = new Set<(task: FixtureTask) => void>()
  /** The bodies of requests, in order. */
  readonly received: Json[] = []

  /** Returns whether a message is for this part. */
  static handles(body: unknown): body is Json {
    const { method } = object(body)
    if (typeof method !== 'string') return false
    if (method === 'tools/call') return Object.hasOwn(taskTools, String(paramsOf(object(body)).name))
    return method.startsWith('tasks/') || (method === 'subscriptions/listen' && followedIn(object(body)) !== undefined)
  }

  status(id: string): string | undefined {
    return this.#tasks.get(id)?.status
  }

  handle(request: IncomingMessage, response: ServerResponse, body: Json): void {
    this.received.push(body)
    const answer = (reply: Reply) => {
      const { status, ...rest } = reply
      send(response, status, { jsonrpc: '2.0', id: body.id, ...rest })
    }
    const refused = refusalOf(request, body)
    if (refused !== null) answer(refused)
    else if (body.method === 'tools/call') this.#call(body, answer)
    else if (body.method === 'subscriptions/listen') this.#listen(response, body)
    else answer(this.#about(body))
  }

  close(): void {
    for (const task of this.#tasks.values()) task.close()
  }

  #about({ method, params }: Json): Reply {
    const { taskId, inputResponses } = object(params)
    const task = this.#tasks.get(String(taskId))
    if (task === undefined) return errorOf(200, -32602, 'no such task')
    if (method === 'tasks/get') return complete(task.detailed())
    if (method === 'tasks/update') task.answer(object(inputResponses))
    if (method === 'tasks/cancel') task.cancel()
    return complete({})
  }

  #call(body: Json, answer: (reply: Reply) => void): void {
    const { name, arguments: args, inputResponses } = paramsOf(body)
    const tool = taskTools[String(name)]
    if (name === 'test_tool_with_task' && inputResponses === undefined) {
      const params = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
      const inputRequests = { user_name: { method: 'elicitation/create', params } }
      answer({ status: 200, result: { resultType: 'input_required', inputRequests } })
      return
    }
    const runsAsTask = declaresTasks(body) && tool?.support !== 'forbidden'
    const task = new FixtureTask((changed) => {
      for (const listener of this.#listeners) listener(changed)
      if (!runsAsTask) answer(complete(object(changed.detailed().result)))
    })
    if (runsAsTask) this.#tasks.set(task.id, task)
    const user = object(object(object(inputResponses).user_name).content).name
    const created = task.seed()
    tool?.start(task, { ...object(args), user })
    if (runsAsTask) answer({ status: 200, result: { resultType: 'task', ...created } })
  }

  #listen(response: ServerResponse, body: Json): void {
    const followed = followedIn(body) ?? []
    const known = followed.filter((id) => this.#tasks.has(id))
    const _meta = { [SUBSCRIPTION]: body.id }
    const notify = (method: string, params: Json) =>
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...params, _meta } })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    notify('notifications/subscriptions/acknowledged', { notifications: { taskIds: known } })
    // It also sends tasks to which the client did not subscribe, which a careless server would do.
    const listener = (task: FixtureTask) => void notify('notifications/tasks', task.detailed())
    this.#listeners.add(listener)
    response.on('close', () => this.#listeners.delete(listener))
  }
}

/** A server with the tasks extension alone. */
export interface TaskServer {
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string
  readonly tasks: TaskFixture
  close(): Promise<void>
}

export async function startTaskServer(): Promise<TaskServer> {
  const tasks = new TaskFixture()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body: unknown = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())
      if (TaskFixture.handles(body)) tasks.handle(request, response, body)
      else send(response, 200, { jsonrpc: '2.0', id: object(body).id, result: resultOf(object(body).method) })
    })
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    tasks,
    async close() {
      tasks.close()
      await closed(server)
    },
  }
}

/** A response without its id. */
interface Reply {
  readonly status: number
  readonly result?: Json
  readonly error?: Json
}

function complete(result: Json): Reply {
  return { status: 200, result: { resultType: 'complete', ...result } }
}

function errorOf(status: number, code: number, message: string, data?: Json): Reply {
  return { status, error: { code, message, ...(data && { data }) } }
}

function declaresTasks(body: Json): boolean {
  const { extensions } = object(object(paramsOf(body)._meta)[CAPABILITIES])
  return object(extensions)[EXTENSION] !== undefined
}

function refusalOf({ headers }: IncomingMessage, body: Json): Reply | null {
  const { method, params } = body
  const { name, taskId } = object(params)
  const mirrored = method === 'tools/call' ? name : taskId
  const isMirrored = headers['mcp-method'] === method && (mirrored === undefined || headers['mcp-name'] === mirrored)
  if (method === 'tasks/list' || method === 'tasks/result') return errorOf(404, -32601, 'no such method')
  if (!isMirrored) return errorOf(400, -32020, 'the headers repeat another request')
  const needsTasks = method === 'tools/call' ? taskTools[String(name)]?.support === 'required' : true
  if (!needsTasks || declaresTasks(body)) return null
  return errorOf(400, -32021, 'missing capability', { requiredCapabilities: { extensions: { [EXTENSION]: {} } } })
}

function resultOf(method: unknown): Json {
  const members = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  if (method === 'tools/list') {
    const tools = Object.keys(taskTools).map((name) => ({ name, inputSchema: { type: 'object' } }))
    return { ...members, tools }
  }
  const capabilities = { tools: {}, extensions: { [EXTENSION]: {} } }
  return { ...members, supportedVersions: ['2026-07-28'], capabilities, serverInfo: { name: 'tasks', version: '1' } }
}

function followedIn(body: Json): readonly string[] | undefined {
  const { taskIds } = object(paramsOf(body).notifications)
  return Array.isArray(taskIds) ? taskIds.map(String) : undefined
}

function paramsOf(body: Json): Json {
  return object(body.params)
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
