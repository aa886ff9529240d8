import { type PoolObservers, readJsonObject, reasonOf, watchedPool } from '@plat/core'
import type { Log } from '@plat/process'
import { type OnceSet, type OnceSets, type OnceVerdict, StateUnreachableError } from '@plat/state'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AdminError, type KnownPerson, type PersonMarks, parameter } from '../../../admin/index.ts'
import type { ErrorCode } from '../../../call/index.ts'
import type { NotifierConfig } from '../config.ts'
import { type ApprovalView, argumentsOf } from '../notice.ts'
import { isWhole } from '../targets/arguments.ts'
import { type Outside, secretIn, sendOnce } from '../targets/target.ts'
import { type Approver, approverOf } from './approvers.ts'
import { type BearerTokens, personIn, type TokenPerson } from './bearer.ts'
import {
  type CallbackRequest,
  commandOf,
  type Decision,
  decisionOf,
  isAllowed,
  isTeamsMessage,
  type ReadSigned,
  readSlack,
  readTeams,
  readWebhook,
  SKEW_MS,
} from './signed.ts'

/** Maximum size of a callback, in bytes. */
const BODY_MAX_BYTES = 64 * 1024

/** A vote for an approval. */
export interface Ballot extends Approver {
  readonly verdict: Decision['verdict']
  readonly reason: string
  /** `notifier/<name>` */
  readonly via: string
}

/** Where an approval belongs. */
interface Place {
  readonly namespace: string
  readonly tenant: string
}

/** Approvals, as far as callbacks use them. */
export interface Decider {
  /** Returns null if the approval does not exist. */
  placeOf(approval: string): Place | null
  /** Records a vote and returns the state of the approval. Throws `AdminError`. */
  decide(approval: string, ballot: Ballot): Promise<{ readonly state: string; readonly missing: number }>
  /** Returns the marks of a person, with those of `adminAuth.people`. */
  personOf(known: KnownPerson): PersonMarks
  /** Returns the approval for notices, or null if it does not exist. */
  view(approval: string): ApprovalView | null
  mayApprove(person: { readonly user: string; readonly groups: readonly string[] }, place: Place): boolean
}

export interface Caller {
  readonly config: NotifierConfig
  /** `notifiers[0]` */
  readonly field: string
  /** Null if callbacks carry no tokens. */
  readonly bearer: BearerTokens | null
}

export interface CallbackParts extends Outside {
  readonly pools?: PoolObservers<'callback_marks'>
  readonly callers: ReadonlyMap<string, Caller>
  readonly decider: Decider
  /** Callbacks that were accepted. */
  readonly once: OnceSets
  readonly log: Log
}

const SIGNED: Readonly<Record<NotifierConfig['type'], ReadSigned | null>> = {
  webhook: readWebhook,
  slack: readSlack,
  teams: readTeams,
  matrix: null,
}

/** A decision and the person who made it. */
interface CallbackDecision {
  readonly decision: Decision
  readonly approver: Approver | null
  /** URL for the reply to Slack, or null. */
  readonly answerTo: string | null
}

/** `POST /v1/notifiers/{name}/callback`: people decide in the chat that notified them. */
export class CallbackRoutes {
  readonly #parts: CallbackParts
  readonly #seen: OnceSet

  constructor(parts: CallbackParts) {
    this.#parts = parts
    const cap = watchedPool({ name: 'callback_marks', observer: parts.pools?.of('callback_marks') })
    this.#seen = parts.once.set('callback-marks', cap)
  }

  mount(app: FastifyInstance): void {
    app.register(async (scope) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser(
        '*',
        { parseAs: 'buffer', bodyLimit: BODY_MAX_BYTES },
        async (_: FastifyRequest, body: Buffer) => body,
      )
      scope.setErrorHandler((error, request, reply) => {
        if (!(error instanceof AdminError)) throw error
        return reply.code(error.status).send({ error: error.code, message: error.message, requestId: request.id })
      })
      scope.post('/v1/notifiers/:name/callback', (request, reply) => this.#called(request, reply))
    })
  }

  async #called(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const name = parameter(request.params, 'name')
    const caller = this.#parts.callers.get(name)
    if (caller === undefined)
      throw new AdminError('not_found', 'there is no notifier of this name that accepts callbacks')
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
    const callback = await this.#verified(caller, { headers: request.headers, body })
    reply.header('cache-control', 'no-store')
    const { type } = caller.config
    if (type === 'webhook' || type === 'matrix') return reply.send(await this.#decide(caller, callback))
    // In a chat a refusal is a normal reply, shown to the person who pressed the button.
    const words = await this.#decide(caller, callback).then(
      ({ state, missing }) =>
        state === 'pending' ? `Noted: ${missing} more must approve.` : `The approval is ${state}.`,
      (error: unknown) => {
        if (error instanceof AdminError) return `Not done: ${error.message}.`
        throw error
      },
    )
    if (type === 'teams') return reply.send({ type: 'message', text: words })
    if (callback.answerTo !== null) void this.#replyToSlack(caller, callback.answerTo, words)
    return reply.send({})
  }

  async #decide({ config: { name, type } }: Caller, { decision, approver }: CallbackDecision) {
    const { decider, log } = this.#parts
    const { approval, verdict, reason } = decision
    const namespace = decider.placeOf(approval)?.namespace ?? null
    if (approver === null) throw new AdminError('forbidden', 'you are not an approver (userMap)')
    const isHere = approver.namespaces === null || (namespace !== null && approver.namespaces.includes(namespace))
    if (namespace === null || !isHere) throw new AdminError('not_found', 'there is no approval with this id')
    const view = decider.view(approval)
    if (verdict === 'approve' && (view === null || !isWhole(type, argumentsOf(view)))) {
      throw new AdminError(
        'forbidden',
        'the arguments do not fit here: approve where they are shown (plat approvals show)',
      )
    }
    try {
      return await decider.decide(approval, { ...approver, verdict, reason, via: `notifier/${name}` })
    } catch (error) {
      if (error instanceof AdminError) throw error
      log.error({ notifier: name, error: reasonOf(error) }, 'a decision by callback could not be stored')
      throw new AdminError('state_unavailable', 'approvals cannot be stored now')
    }
  }

  #verified(caller: Caller, incoming: CallbackRequest): Promise<CallbackDecision> {
    const showsToken = /^bearer /i.test(incoming.headers.authorization ?? '')
    return caller.bearer !== null && (showsToken || caller.config.signingSecretFile === '')
      ? this.#verifiedByToken(caller, caller.bearer, incoming)
      : this.#verifiedBySignature(caller, incoming)
  }

  async #verifiedBySignature({ config, field }: Caller, incoming: CallbackRequest): Promise<CallbackDecision> {
    const read = SIGNED[config.type]
    if (read === null || config.signingSecretFile === '') throw unknownCaller()
    const { clock, log } = this.#parts
    const secret = await secretIn(`${field}.signingSecretFile`, config.signingSecretFile).catch((error: unknown) => {
      log.error({ notifier: config.name, error: reasonOf(error) }, 'a callback cannot be verified')
      throw new AdminError('state_unavailable', 'callbacks cannot be verified now')
    })
    const now = clock.now()
    const callback = read(incoming, secret, now)
    if (callback === 'unauthenticated') throw unknownCaller()
    if (callback === 'unreadable') throw undecided()
    if (!isAllowed(config, callback.origin)) throw elsewhere()
    const remembered = await this.#remember(config.name, callback.mark, now + 2 * SKEW_MS)
    if (remembered === 'taken') throw new AdminError('conflict', 'this callback has come before')
    if (remembered === 'full') throw new AdminError('state_unavailable', 'too many callbacks at once')
    const { user, answerTo, approval, verdict, reason } = callback
    return { decision: { approval, verdict, reason }, approver: approverOf(config, user, this.#named), answerTo }
  }

  async #remember(name: string, mark: string, until: number): Promise<OnceVerdict> {
    try {
      return await this.#seen.insert(`${name} ${mark}`, '', until, name)
    } catch (error) {
      if (!(error instanceof StateUnreachableError)) throw error
      throw new AdminError('state_unavailable', 'it is not known whether this callback has come before')
    }
  }

  async #verifiedByToken(
    { config }: Caller,
    bearer: BearerTokens,
    { headers, body }: CallbackRequest,
  ): Promise<CallbackDecision> {
    const claims = await bearer.verify(headers.authorization)
    if (claims === null) throw unknownCaller()
    const members = readJsonObject(body.toString('utf8'))
    if (members === null) throw undecided()
    if (config.type === 'teams') {
      // The token is the bot service's: it acts for its users, and names the service that sent the message.
      if (typeof claims.serviceurl !== 'string' || claims.serviceurl !== members.serviceUrl) throw unknownCaller()
      if (!isTeamsMessage(members, this.#parts.clock.now())) throw unknownCaller()
      const command = commandOf(members)
      if (command === null) throw undecided()
      if (!isAllowed(config, command.origin)) throw elsewhere()
      return { decision: command, approver: approverOf(config, command.user, this.#named), answerTo: null }
    }
    const decision = decisionOf(members)
    const person = personIn(claims)
    if (decision === null) throw undecided()
    if (person === null) return { decision, approver: null, answerTo: null }
    const isMapped = Object.keys(config.userMap).length > 0
    const approver = isMapped ? approverOf(config, person.user, this.#named) : this.#approverByRole(person, decision)
    // The token identifies the person, whatever name the map gives.
    approver?.person.push(...this.#parts.decider.personOf(person.known))
    return { decision, approver, answerTo: null }
  }

  /** Without a map people have their names of the admin API. */
  readonly #named = (names: readonly string[]): PersonMarks => this.#parts.decider.personOf({ names, subject: null })

  #approverByRole(person: TokenPerson, { approval }: Decision): Approver | null {
    const { decider } = this.#parts
    const place = decider.placeOf(approval)
    if (place === null || !decider.mayApprove(person, place)) return null
    return { by: `user:${person.user}`, person: [], groups: [...person.groups], namespaces: [place.namespace] }
  }

  /** Replies only to the host of the notifier's own webhook: a callback must not choose the destination. */
  async #replyToSlack({ config, field }: Caller, answerTo: string, text: string): Promise<void> {
    const own = await secretIn(`${field}.webhookURLFile`, config.webhookURLFile).catch(() => '')
    const [url, ours] = [URL.parse(answerTo), URL.parse(own)]
    if (url === null || url.origin !== ours?.origin) return
    const body = JSON.stringify({ response_type: 'ephemeral', replace_original: false, text })
    await sendOnce(async () => ({ url: url.href, body }), config, this.#parts)
  }
}

function unknownCaller(): AdminError {
  return new AdminError('unauthenticated', 'the callback has no valid signature, or is too old')
}

function elsewhere(): AdminError {
  return new AdminError('forbidden', 'nothing is decided from this channel or tenant (notifiers[].channels, .tenants)')
}

function undecided(): AdminError {
  return new AdminError('invalid_request' satisfies ErrorCode, 'the callback contains no readable decision')
}
