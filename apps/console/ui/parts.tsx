import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { ApiError } from '../api/client.ts'
import { useNow } from '../app/clock.ts'
import { takeMoved } from '../app/route.ts'
import { absoluteTime, counted, duration, money, relativeTime } from './format.ts'
import { Text } from './text.tsx'

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'info'

/** A state in one word; the word carries the meaning, the colour only supports it. */
export function Badge({ tone = 'neutral', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A time as it is from now, with the absolute one in the title; `full`: both. */
export function Time({ at, full = false }: { readonly at: string | null; readonly full?: boolean }) {
  const nowMs = useNow(full ? 1_000 : 10_000)
  const ms = at === null ? Number.NaN : Date.parse(at)
  if (Number.isNaN(ms)) return <span class="faint">never</span>
  const fixed = absoluteTime(ms)
  return (
    <time dateTime={new Date(ms).toISOString()} title={fixed}>
      {full && (
        <>
          <span class="nowrap">{fixed}</span> <span class="nowrap">({relativeTime(ms, nowMs)})</span>
        </>
      )}
      {!full && relativeTime(ms, nowMs)}
    </time>
  )
}

export function TimeLeft({ until }: { readonly until: string }) {
  const left = Date.parse(until) - useNow(1_000)
  if (left <= 0) return <Badge tone="bad">time is up</Badge>
  return (
    <span class={left < 60_000 ? 'bad-text' : ''} title={absoluteTime(Date.parse(until))}>
      {duration(Math.floor(left / 1_000) * 1_000)} left
    </span>
  )
}

/** An amount of money. */
export function Money({ micros, currency }: { readonly micros: number; readonly currency: string }) {
  return <span class="number">{money(micros, currency)}</span>
}

/** An amount of money or of tokens, as budgets have them. */
export function Amount({
  of,
}: {
  readonly of: { readonly micros: number; readonly currency: string } | { readonly tokens: number }
}) {
  if ('tokens' in of) return <span class="number">{counted(of.tokens, 'token')}</span>
  return <Money micros={of.micros} currency={of.currency} />
}

/** An area without content, with what to do. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
    </div>
  )
}

/** What to do about a refusal, by its code. */
const FIXES: Readonly<Record<string, string>> = {
  forbidden:
    'Your roles do not allow this. An administrator grants roles in adminAuth.roles or adminAuth.namespaceRoles.',
  not_found: 'It does not exist, or it belongs to a namespace in which you have no role.',
  conflict: 'Something changed meanwhile. Reload and look again before you repeat this.',
  rate_limited: 'Too many requests. Wait a moment, then try again.',
  audit_unavailable:
    'The ledger cannot be written at the moment, so nothing is changed. Look at the health of the gateway.',
}

/** A failure with its message, what to do, and a button to try again. */
export function Problem({ error, retry }: { readonly error: ApiError; readonly retry?: (() => void) | undefined }) {
  return (
    <div class="problem" role="alert">
      <p class="problem-title">
        <Text of={error.message} />
      </p>
      {FIXES[error.code] !== undefined && <p>{FIXES[error.code]}</p>}
      {error.stepUp !== null && (
        <p>
          <a class="button" href={error.stepUp} data-load>
            Log in again to continue
          </a>
        </p>
      )}
      {retry !== undefined && (
        <button type="button" class="small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Names with values, as a list of definitions. */
export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>
}

export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** The heading of a page. It receives the focus when the page is opened, so that screen readers announce it. */
export function PageHead({
  title,
  children,
}: {
  readonly title: ComponentChildren
  readonly children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // The first page leaves the focus to the browser.
    if (takeMoved()) heading.current?.focus()
  })
  return (
    <div class="page-head">
      <h1 tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {children}
    </div>
  )
}

/** A part of a page with a heading. */
export function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="section">
      <h2>{title}</h2>
      {children}
    </section>
  )
}
