import { request } from 'node:http'
import { isObject, parseStrict } from '@plat/core'
import { until } from '@plat/testkit/until'

export interface ReadEvent {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A reader of `GET /v1/events` on its own connection. */
export interface EventStream {
  readonly status: number
  readonly events: readonly ReadEvent[]
  /** The first event of this type, once it has come. */
  first(type: string): Promise<ReadEvent>
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>
  close(): void
}

export function readEvents(url: string, headers: Readonly<Record<string, string>>): Promise<EventStream> {
  const events: ReadEvent[] = []
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v1/events`, { headers, agent: false }, (response) => {
      let text = ''
      const ended = new Promise<void>((done) => response.on('close', () => done()))
      response.setEncoding('utf8')
      response.on('error', () => {})
      response.on('data', (chunk: string) => {
        const blocks = (text + chunk).split('\n\n')
        text = blocks.pop() ?? ''

        for (const block of blocks) if (block.includes('event: ')) events.push(eventIn(block))
      })
      const first = async (type: string) => {
        const find = () => events.find((event) => event.type === type)
        await until(
          () => find() !== undefined,
          () => `${type} after ${events.map((event) => event.type).join()}`,
        )
        return find() ?? { id: '', type, data: {} }
      }
      resolve({ status: response.statusCode ?? 0, events, first, ended, close: () => void sent.destroy() })
    })
    sent.on('error', reject)
    sent.end()
  })
}

function eventIn(block: string): ReadEvent {
  const field = (name: string) =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2) ?? ''
  const data = parseStrict(Buffer.from(field('data')))
  return { id: field('id'), type: field('event'), data: isObject(data) ? data : {} }
}
