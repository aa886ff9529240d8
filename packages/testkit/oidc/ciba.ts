import { parseStrict } from '@plat/core'
import { until } from '../until.ts'
import { startProviderProcess } from './process.ts'

/** A question on a person's device. */
export interface DeviceQuestion {
  readonly person: string
  readonly binding_message: string
  readonly scope: string
  readonly acr_values?: string
  readonly requested_expiry?: string
}

/** `oidc-provider` with backchannel authentication, and the devices of its people. */
export interface CibaProvider {
  /** Its issuer, `http://127.0.0.1:<port>`. */
  readonly url: string
  /** The question that reaches this person's device, once it has come. */
  question(person: string): Promise<DeviceQuestion>
  /** How many questions have reached this person. */
  count(person: string): number
  /** `allow <person> [as <other>] [acr <acr>]` or `deny <person>`: answers the oldest question; resolves when it counts. */
  answer(line: string): Promise<void>
  close(): Promise<void>
}

/** Starts it on a free port; `client` as in RFC 7591; users in `unknown` have no account. */
export async function startCibaProvider(setup: {
  readonly client: Readonly<Record<string, unknown>>
  readonly unknown?: readonly string[]
}): Promise<CibaProvider> {
  const { url, lines, send, close } = await startProviderProcess('oidc-ciba.mjs', setup)
  const questions = () =>
    lines().flatMap((line) => {
      const requested: unknown = line.startsWith('request ') ? parseStrict(line.slice('request '.length)) : null
      return isQuestion(requested) ? [requested] : []
    })
  return {
    url,
    async question(person) {
      const find = () => questions().find((one) => one.person === person)
      await until(
        () => find() !== undefined,
        () => `a question to ${person}, after:\n${lines().join('\n')}`,
      )
      const found = find()
      if (found === undefined) throw new Error('the question is gone')
      return found
    },
    count: (person) => questions().filter((one) => one.person === person).length,
    async answer(line) {
      send(line)
      await until(() => lines().includes(`answered ${line}`), line)
    },
    close,
  }
}

function isQuestion(value: unknown): value is DeviceQuestion {
  return typeof value === 'object' && value !== null && 'person' in value && 'binding_message' in value
}
