/** Calls of A2A in both versions, as test kits make them: each sends requests, and what comes back is compared. */
import { type Case, call, findText, type Reply, type Sent, send, type Target } from './target.ts'

/** Names of methods, parameters and values of a version. */
interface Dialect {
  readonly send: string
  readonly stream: string
  readonly get: string
  readonly cancel: string
  readonly subscribe: string
  readonly card: string
  readonly push: Readonly<Record<'create' | 'get' | 'list' | 'delete', string>>
  message(text: string, more?: object): object
  /** Parameters that name the webhook `hook` of a task. */
  hook(task: string): object
  /** Parameters that register the webhook `hook` for a task. */
  newHook(task: string, url: string): object
  /** Parameters that name a task whose webhooks are listed. */
  hooks(task: string): object
  readonly working: string
}

const DIALECTS: Readonly<Record<Target['version'], Dialect>> = {
  '1.0': {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
    card: 'GetExtendedAgentCard',
    push: {
      create: 'CreateTaskPushNotificationConfig',
      get: 'GetTaskPushNotificationConfig',
      list: 'ListTaskPushNotificationConfigs',
      delete: 'DeleteTaskPushNotificationConfig',
    },
    message: (text, more) => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more }),
    hook: (taskId) => ({ taskId, id: 'hook' }),
    newHook: (taskId, url) => ({ taskId, id: 'hook', url, token: 'secret' }),
    hooks: (taskId) => ({ taskId }),
    working: 'TASK_STATE_WORKING',
  },
  '0.3': {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
    card: 'agent/getAuthenticatedExtendedCard',
    push: {
      create: 'tasks/pushNotificationConfig/set',
      get: 'tasks/pushNotificationConfig/get',
      list: 'tasks/pushNotificationConfig/list',
      delete: 'tasks/pushNotificationConfig/delete',
    },
    message: (text, more) => ({
      kind: 'message',
      messageId: crypto.randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text }],
      ...more,
    }),
    hook: (id) => ({ id, pushNotificationConfigId: 'hook' }),
    newHook: (taskId, url) => ({ taskId, pushNotificationConfig: { id: 'hook', url, token: 'secret' } }),
    hooks: (id) => ({ id }),
    working: 'working',
  },
}

const HOOK = 'https://hooks.example/a2a'
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

const dialectOf = ({ version }: Target): Dialect => DIALECTS[version]

/** Sends a message with this text, and other parameters. */
function say(target: Target, text: string, more: object = {}, of: object = {}): Promise<Reply> {
  const { send: method, message } = dialectOf(target)
  return call(target, method, { message: message(text, of), ...more })
}

/** Begins a task that ends, needs input or waits, and resolves to its ID. */
async function taskThat(target: Target, text: 'work a' | 'need' | 'wait'): Promise<string> {
  const { stream, message, working } = dialectOf(target)
  if (text !== 'wait') {
    const reply = await say(target, text)
    return findText(reply, 'taskId')
  }
  const started = Promise.withResolvers<string>()
  const read = call(
    target,
    stream,
    { message: message(text) },
    {
      onMessage: (event) => {
        if (findText(event, 'state') === working) started.resolve(findText(event, 'taskId'))
      },
    },
  )
  read.catch(started.reject)
  return await started.promise
}

function calls(method: (dialect: Dialect) => string, params: unknown, sent?: Sent): Case {
  return async (target) => [await call(target, method(dialectOf(target)), params, sent)]
}

/** A case about a task. */
function about(
  text: 'work a' | 'need' | 'wait',
  act: (target: Target, task: string) => Promise<Reply | readonly Reply[]>,
): Case {
  return async (target) => {
    const task = await taskThat(target, text)
    const replies = await act(target, task)
    if (text === 'wait') await call(target, dialectOf(target).cancel, { id: task })
    return 'status' in replies ? [replies] : replies
  }
}

/** A case that sends a message with other members. */
function says(text: string, more: object = {}, of: object = {}): Case {
  return async (target) => [await say(target, text, more, of)]
}

function posts(body: (dialect: Dialect) => unknown, sent?: Sent): Case {
  return async (target) => [await send(target, body(dialectOf(target)), sent)]
}

const get = (target: Target, id: string, more: object = {}) => call(target, dialectOf(target).get, { id, ...more })
const cancel = (target: Target, id: string) => call(target, dialectOf(target).cancel, { id })

/** Reads a task that works to its end, which a cancellation brings. */
async function followed(target: Target, id: string): Promise<readonly Reply[]> {
  let cancelled: Promise<Reply> | undefined
  const onMessage = () => {
    cancelled ??= cancel(target, id)
  }
  const stream = await call(target, dialectOf(target).subscribe, { id }, { onMessage })
  return [stream, await (cancelled ?? get(target, id))]
}

const operations: Readonly<Record<string, Case>> = {
  'send: a message': says('hello'),
  'send: a task': says('work a|b'),
  'send: a task that needs input': says('need'),
  'send: a long text': says(`work ${'a'.repeat(2 ** 19)}`),
  'send: other alphabets and control characters': says('work 你好, здравствуйте, مرحبا\n\t\b\f\r'),
  'send: metadata and extensions': says('work a', { metadata: { a: [1, { b: null }] } }, { metadata: { c: 0.5 } }),
  'send: to an unknown task': says('work a', {}, { taskId: UNKNOWN }),
  'send: to a completed task': about('work a', (target, taskId) => say(target, 'work b', {}, { taskId })),
  'send: to a task that needs input': about('need', (target, taskId) => say(target, 'work b', {}, { taskId })),
  'send: in the context of another message': about('work a', async (target, task) => {
    const contextId = findText(await get(target, task), 'contextId')
    return [await get(target, task), await say(target, 'work b', {}, { contextId })]
  }),
  'send: to a task in another context': about('need', (target, taskId) =>
    say(target, 'work b', {}, { taskId, contextId: UNKNOWN }),
  ),
  'send: history is limited': says('work a', { configuration: { historyLength: 1 } }),
  'stream: a message': async (target) => {
    const { stream, message } = dialectOf(target)
    return [await call(target, stream, { message: message('hello') })]
  },
  'stream: a task': async (target) => {
    const { stream, message } = dialectOf(target)
    return [await call(target, stream, { message: message('work a|b|c') })]
  },
  'stream: a task that needs input': async (target) => {
    const { stream, message } = dialectOf(target)
    return [await call(target, stream, { message: message('need') })]
  },
  'get: a completed task': about('work a', get),
  'get: a task that works': about('wait', get),
  'get: without history': about('work a', (target, id) => get(target, id, { historyLength: 0 })),
  'get: with more history than there is': about('work a', (target, id) => get(target, id, { historyLength: 1000 })),
  'get: a negative length of history': about('work a', (target, id) => get(target, id, { historyLength: -1 })),
  'get: an unknown task': (target) => get(target, UNKNOWN).then((reply) => [reply]),
  'get: without an ID': calls(({ get: method }) => method, {}),
  'get: an ID that is a number': calls(({ get: method }) => method, { id: 12 }),
  'cancel: a task that works': about('wait', cancel),
  'cancel: a task that needs input': about('need', cancel),
  'cancel: a completed task': about('work a', cancel),
  'cancel: twice': about('wait', async (target, id) => [await cancel(target, id), await cancel(target, id)]),
  'cancel: an unknown task': (target) => cancel(target, UNKNOWN).then((reply) => [reply]),
  'resubscribe: a task that works, to its end': about('wait', followed),
  'resubscribe: a completed task': about('work a', (target, id) => call(target, dialectOf(target).subscribe, { id })),
  'resubscribe: an unknown task': calls(({ subscribe }) => subscribe, { id: UNKNOWN }),
  'push: create, get, list, delete': about('need', async (target, task) => {
    const { push, hook, hooks, newHook } = dialectOf(target)
    const steps: readonly (readonly [string, object])[] = [
      [push.create, newHook(task, HOOK)],
      [push.get, hook(task)],
      [push.list, hooks(task)],
      [push.delete, hook(task)],
      [push.list, hooks(task)],
      [push.get, hook(task)],
    ]
    const replies: Reply[] = []
    for (const [method, params] of steps) replies.push(await call(target, method, params))
    return replies
  }),
  'push: create for an unknown task': async (target) => {
    const { push, newHook } = dialectOf(target)
    return [await call(target, push.create, newHook(UNKNOWN, HOOK))]
  },
  'push: list of an unknown task': async (target) => {
    const { push, hooks } = dialectOf(target)
    return [await call(target, push.list, hooks(UNKNOWN))]
  },
  'push: get of an unknown task': async (target) => {
    const { push, hook } = dialectOf(target)
    return [await call(target, push.get, hook(UNKNOWN))]
  },
  'extended card': calls(({ card }) => card, {}),
}

const lists: Readonly<Record<string, Case>> = {
  'list: an unknown context': calls(() => 'ListTasks', { contextId: UNKNOWN }),
  'list: of a context, in pages': about('work a', async (target, task) => {
    const contextId = findText(await get(target, task), 'contextId')
    await say(target, 'work b', {}, { contextId })
    const list = (more: object) => call(target, 'ListTasks', { contextId, pageSize: 1, ...more })
    const first = await list({})
    return [first, await list({ pageToken: findText(first, 'nextPageToken') })]
  }),
  'list: with artifacts, without history': about('work a', async (target, task) => {
    const contextId = findText(await get(target, task), 'contextId')
    return call(target, 'ListTasks', { contextId, includeArtifacts: true, historyLength: 0 })
  }),
  'list: by state': about('work a', async (target, task) => {
    const contextId = findText(await get(target, task), 'contextId')
    return call(target, 'ListTasks', { contextId, status: 'TASK_STATE_WORKING' })
  }),
  'list: a page of no task': calls(() => 'ListTasks', { pageSize: 0 }),
  'list: a page of too many tasks': calls(() => 'ListTasks', { pageSize: 101 }),
  'list: a page token of another': calls(() => 'ListTasks', { pageToken: 'invalid' }),
  'list: a state that does not exist': about('work a', async (target, task) => {
    const contextId = findText(await get(target, task), 'contextId')
    return call(target, 'ListTasks', { contextId, status: 'WORKING' })
  }),
  'list: a negative length of history': about('work a', async (target, task) => {
    const contextId = findText(await get(target, task), 'contextId')
    return call(target, 'ListTasks', { contextId, historyLength: -1 })
  }),
  'send: returns at once': async (target) => {
    const reply = await say(target, 'wait', { configuration: { returnImmediately: true } })
    await cancel(target, findText(reply, 'id'))
    return [{ ...reply, messages: [findText(reply.messages, 'state') !== ''] }]
  },
  'spelling: snake_case': posts(({ send: method }) => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { message: { message_id: 'm', role: 'ROLE_USER', parts: [{ text: 'hello', media_type: 'text/plain' }] } },
  })),
  'spelling: a context in snake_case': calls(() => 'ListTasks', { context_id: UNKNOWN, page_size: 2 }),
  'version: none': posts(() => ({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: UNKNOWN } }), {
    headers: { 'a2a-version': '' },
  }),
}

const json = (more: object) => () => ({ jsonrpc: '2.0', id: 1, ...more })

const errors: Readonly<Record<string, Case>> = {
  'error: not JSON': posts(() => '{"jsonrpc": "2.0", "method": "x"'),
  'error: empty': posts(() => ''),
  'error: an array': posts(() => '[]'),
  'error: a batch': posts(({ get: method }) => [{ jsonrpc: '2.0', id: 1, method, params: { id: UNKNOWN } }]),
  'error: a text': posts(() => '"hello"'),
  'error: another version of JSON-RPC': posts(({ send: method }) => ({ jsonrpc: '1.0', id: 1, method, params: {} })),
  'error: no version of JSON-RPC': posts(({ send: method }) => ({ id: 1, method, params: {} })),
  'error: no method': posts(json({ params: {} })),
  'error: a method that is a number': posts(json({ method: 1, params: {} })),
  'error: an unknown method': posts(json({ method: 'Unknown', params: {} })),
  'error: an ID that is an object': posts(({ send: method }) => ({ jsonrpc: '2.0', id: { a: 1 }, method, params: {} })),
  'error: parameters that are a list': posts(({ send: method }) => ({ jsonrpc: '2.0', id: 1, method, params: [] })),
  'error: parameters that are a text': posts(({ send: method }) => ({ jsonrpc: '2.0', id: 1, method, params: 'a' })),
  'error: no parameters': posts(({ send: method }) => ({ jsonrpc: '2.0', id: 1, method })),
  'error: a stream without a message': calls(({ stream }) => stream, {}),
  'error: no message': calls(({ send: method }) => method, {}),
  'error: parts that are a text': says('', {}, { parts: 'invalid' }),
  'error: no parts': says('', {}, { parts: [] }),
  'error: a part without content': says('', {}, { parts: [{}] }),
  'error: an unknown role': says('hello', {}, { role: 'robot' }),
  'error: an ID of a message that is a number': says('hello', {}, { messageId: 1 }),
  'unknown: members of the parameters': says('hello', { unknownMember: 1 }),
  'unknown: members of the message': says('hello', {}, { _extra: { a: 1 }, future: [] }),
  'unknown: members of the request': posts(({ get: method }) => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { id: UNKNOWN },
    extra: 1,
  })),
  'unknown: an extension': calls(
    ({ get: method }) => method,
    { id: UNKNOWN },
    { headers: { 'a2a-extensions': 'https://x.example/e' } },
  ),
  'null: optional members': says('hello', { metadata: null }, { taskId: null, contextId: null, metadata: null }),
  'version: unknown': calls(({ get: method }) => method, { id: UNKNOWN }, { headers: { 'a2a-version': '99.0' } }),
  'address: with a trailing slash': calls(({ get: method }) => method, { id: UNKNOWN }, { suffix: '/' }),
}

/** The cases of a version, by name. */
export function casesOf(version: Target['version']): Readonly<Record<string, Case>> {
  if (version === '1.0') return { ...operations, ...lists, ...errors }
  const withPatch = calls(({ get: method }) => method, { id: UNKNOWN }, { headers: { 'a2a-version': '0.3.0' } })
  return { ...operations, ...errors, 'version: with a patch': withPatch }
}
