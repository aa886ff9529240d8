import { createHmac, hash } from 'node:crypto'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Session token of temporary credentials; null for long-term ones. */
  readonly sessionToken: string | null
}

/** Reads the standard `AWS_*` environment variables. Returns null when they hold no credentials. */
export function awsCredentialsOf(env: NodeJS.ProcessEnv): AwsCredentials | null {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN } = env
  if (!accessKeyId || !secretAccessKey) return null
  return { accessKeyId, secretAccessKey, sessionToken: AWS_SESSION_TOKEN || null }
}

export interface AwsRequest {
  readonly method: string
  readonly url: URL
  /** Additional headers to sign; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** `eu-central-1` */
  readonly region: string
  /** `bedrock` */
  readonly service: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/**
 * Returns the headers of a request to AWS signed with Signature Version 4, including the given ones. `host` is signed as the URL has it and must be
 * sent unchanged. For S3 only with paths of unreserved characters, which it encodes differently, and with `x-amz-content-sha256`.
 */
export function signAws(request: AwsRequest, credentials: AwsCredentials): Record<string, string> {
  const { method, url, body, region, service, at, headers = {} } = request
  const time = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '')
  const date = time.slice(0, 8)
  const { accessKeyId, secretAccessKey, sessionToken } = credentials
  const sent = {
    ...headers,
    'x-amz-date': time,
    ...(sessionToken !== null && { 'x-amz-security-token': sessionToken }),
  }
  const signed = Object.entries({ ...sent, host: url.host }).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    method,
    canonicalPath(url),
    canonicalQuery(url),
    ...signed.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}`),
    '',
    names,
    hash('sha256', body, 'hex'),
  ].join('\n')
  const scope = `${date}/${region}/${service}/aws4_request`
  const text = [ALGORITHM, time, scope, hash('sha256', canonical, 'hex')].join('\n')
  const key = [date, region, service, 'aws4_request'].reduce<string | Buffer>(mac, `AWS4${secretAccessKey}`)
  const signature = mac(key, text).toString('hex')
  return {
    ...sent,
    authorization: `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  }
}

function mac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** The path is signed as sent, each segment percent-encoded once more. */
function canonicalPath({ pathname }: URL): string {
  return pathname.split('/').map(encoded).join('/')
}

function canonicalQuery({ searchParams }: URL): string {
  const pairs = [...searchParams].map(([name, value]) => [encoded(name), encoded(value)] as const)
  return pairs
    .toSorted(([a, x], [b, y]) => (a < b || (a === b && x < y) ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** Encodes all but the unreserved characters of RFC 3986. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)
}
