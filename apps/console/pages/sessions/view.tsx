import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, type Client, urlOf } from '../../api/client.ts'
import { useShared } from '../../app/session.ts'
import { Badge, Problem, Section } from '../../ui/parts.tsx'
import { Text } from '../../ui/text.tsx'

export type ViewMode = 'watch' | 'control'

type State =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'open' }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'refused'; readonly error: ApiError }

/** Only a screen in control takes keys. */
const LABELS = {
  watch: { role: 'img', 'aria-label': 'Screen of the browser' },
  control: { role: 'application', 'aria-label': 'Screen of the browser, which receives your keys and pointer' },
} as const

interface ViewProps {
  readonly id: string
  readonly mode: ViewMode
  readonly close: () => void
}

/** The browser of a session as it is now; with the mode `control` its keys and pointer are those of the person. */
export function View({ id, mode, close }: ViewProps) {
  const { client } = useShared()
  const [state, setState] = useState<State>({ kind: 'connecting' })
  const [attempt, setAttempt] = useState(0)
  const target = useRef<HTMLDivElement>(null)
  useEffect(() => {
    setState({ kind: 'connecting' })
    const running = new AbortController()
    if (target.current !== null)
      void openView({ client, id, mode, target: target.current, setState, signal: running.signal })
    return () => running.abort()
  }, [id, mode, attempt])
  const again = () => setAttempt((before) => before + 1)
  return (
    <Section title={mode === 'watch' ? 'Its browser, read-only' : 'Its browser, under your control'}>
      <p class="view-state" role="status">
        {state.kind === 'connecting' && 'Connecting …'}
        {state.kind === 'open' && mode === 'watch' && <Badge tone="info">watching</Badge>}
        {state.kind === 'open' && mode === 'control' && (
          <Badge tone="warn">in control: the agent sees what you do</Badge>
        )}
        {state.kind === 'ended' && (
          <>
            <Badge tone="warn">ended</Badge> <Text of={state.reason} />
          </>
        )}
      </p>
      {state.kind === 'refused' && <Problem error={state.error} retry={again} />}
      <div ref={target} class={`screen ${mode}`} hidden={state.kind !== 'open'} {...LABELS[mode]} />
      {state.kind === 'ended' && (
        <button type="button" onClick={again}>
          Connect again
        </button>
      )}{' '}
      <button type="button" onClick={close}>
        Close the view
      </button>
    </Section>
  )
}

interface OpenParts extends Omit<ViewProps, 'close'> {
  readonly client: Client
  readonly target: HTMLElement
  readonly setState: (state: State) => void
  readonly signal: AbortSignal
}

/** The request before the WebSocket has its refusal in words: a browser does not show why a handshake failed. */
async function openView({ client, id, mode, target, setState, signal }: OpenParts): Promise<void> {
  try {
    const route = mode === 'watch' ? 'GET /v1/sessions/{id}/view/watch' : 'GET /v1/sessions/{id}/view/control'
    await client.call(route, { params: { id }, signal })
    const { showScreen } = await import('./screen.ts')
    if (signal.aborted) return
    const url = new URL(urlOf(`/v1/sessions/{id}/view/${mode}`, { id }, {}), window.location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    const socket = new WebSocket(url)
    socket.addEventListener('close', ({ reason }) => {
      if (!signal.aborted) setState({ kind: 'ended', reason: reason || 'the connection to the gateway was lost' })
    })
    const end = showScreen(target, socket, { isReadOnly: mode === 'watch', opened: () => setState({ kind: 'open' }) })
    signal.addEventListener('abort', end, { once: true })
  } catch (error) {
    if (signal.aborted) return
    const failed = new ApiError(0, 'no_view', 'The viewer could not be loaded. Reload the page.')
    setState({ kind: 'refused', error: error instanceof ApiError ? error : failed })
  }
}
