import { elementSpans, findSpan, isObject } from '@plat/core'
import { member } from '../../wire/json.ts'
import { spliced, withValue } from '../message.ts'
import { withSharedFollowedIds, withSharedTaskIds } from '../tasks/messages.ts'
import { sharedUri } from './naming.ts'

/**
 * Returns a message of a server with the URIs of its resources as the client must write them: in contents of results, in links of
 * content, and in notifications. `method` is that of the request. Returns the same bytes if there are none.
 */
export function withSharedUris(
  json: Uint8Array,
  value: unknown,
  { method, prefix }: { readonly method: string; readonly prefix: string },
): Uint8Array {
  const result = member(value, 'result')
  if (method === 'resources/read') return edited(json, ['result', 'contents'], member(result, 'contents'), ofContents)
  if (method === 'tasks/get')
    return edited(json, ['result', 'result', 'content'], member(member(result, 'result'), 'content'), ofBlock)
  if (method === 'tools/call' || method === 'tasks/result')
    return edited(json, ['result', 'content'], member(result, 'content'), ofBlock)
  if (method === 'prompts/get') return edited(json, ['result', 'messages'], member(result, 'messages'), ofMessage)
  return json

  function ofContents(element: Uint8Array, contents: unknown): Uint8Array {
    return withUri(element, ['uri'], member(contents, 'uri'))
  }

  function ofBlock(element: Uint8Array, block: unknown): Uint8Array {
    const type = member(block, 'type')
    if (type === 'resource_link') return withUri(element, ['uri'], member(block, 'uri'))
    if (type !== 'resource') return element
    return withUri(element, ['resource', 'uri'], member(member(block, 'resource'), 'uri'))
  }

  function ofMessage(element: Uint8Array, message: unknown): Uint8Array {
    const content = member(message, 'content')
    if (Array.isArray(content)) return edited(element, ['content'], content, ofBlock)
    const span = isObject(content) ? findSpan(element, ['content']) : null
    return span === null ? element : spliced(element, span, ofBlock(element.subarray(...span), content))
  }

  function withUri(element: Uint8Array, path: readonly string[], uri: unknown): Uint8Array {
    return typeof uri === 'string' ? withValue(element, path, jsonText(sharedUri(prefix, uri))) : element
  }
}

/** Returns a notification of a server with its URI and its ids of tasks, if it has any, as the client must write them. */
export function withSharedNames(json: Uint8Array, value: unknown, prefix: string): Uint8Array {
  const located = withNotifiedUri(json, value, prefix)
  return withSharedFollowedIds(withSharedTaskIds(located, value, prefix), value, prefix)
}

function withNotifiedUri(json: Uint8Array, value: unknown, prefix: string): Uint8Array {
  if (member(value, 'method') !== 'notifications/resources/updated') return json
  const uri = member(member(value, 'params'), 'uri')
  return typeof uri === 'string' ? withValue(json, ['params', 'uri'], jsonText(sharedUri(prefix, uri))) : json
}

/** Returns the bytes with each element of a list edited, together with its value. */
function edited(
  json: Uint8Array,
  path: readonly string[],
  list: unknown,
  edit: (element: Uint8Array, value: unknown) => Uint8Array,
): Uint8Array {
  const span = Array.isArray(list) && list.length > 0 ? findSpan(json, path) : null
  if (span === null || !Array.isArray(list)) return json
  const parts: Uint8Array[] = []
  let from = 0
  for (const [index, [start, end]] of elementSpans(json, span[0]).entries()) {
    parts.push(json.subarray(from, start), edit(json.subarray(start, end), list[index]))
    from = end
  }
  return Buffer.concat([...parts, json.subarray(from)])
}

function jsonText(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(text))
}
