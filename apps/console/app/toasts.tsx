import { useRef, useState } from 'preact/hooks'
import { Text } from '../ui/text.tsx'
import { after } from './clock.ts'

export interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: 'good' | 'bad'
}

const SHOWN_MS = 6_000
const MAX_TOASTS = 4

/** Short messages, of which the last few are displayed for a moment. */
export function useToasts() {
  const [toasts, setToasts] = useState<readonly Toast[]>([])
  const next = useRef(0)
  const notify = (text: string, tone: 'good' | 'bad' = 'good') => {
    const id = next.current++
    setToasts((before) => [...before, { id, text, tone }].slice(-MAX_TOASTS))
    after(SHOWN_MS, () => setToasts((before) => before.filter((toast) => toast.id !== id)))
  }
  return { toasts, notify }
}

export function Toasts({ toasts }: { readonly toasts: readonly Toast[] }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text, tone }) => (
        <p key={id} class={`toast ${tone}`}>
          <Text of={text} />
        </p>
      ))}
    </div>
  )
}
