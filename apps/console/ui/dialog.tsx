import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../api/client.ts'
import { asApiError } from '../app/query.ts'
import { Problem } from './parts.tsx'

interface DialogProps {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}

/** A modal dialog: the browser keeps the focus inside and returns it, and Escape closes it. */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    element.current?.showModal()
  }, [])
  return (
    <dialog ref={element} aria-label={title} onClose={close}>
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  /** The button that does it. */
  readonly action: string
  readonly tone?: 'good' | 'bad'
  /** Label of a text that is sent along; absent: none. */
  readonly reason?: string
  readonly confirm: (reason: string) => Promise<void>
  readonly close: () => void
  readonly children?: ComponentChildren
}

/** Confirms an action, with a reason if it has one. A refusal is displayed, and the dialog stays. */
export function Confirm({ title, action, tone = 'bad', reason, confirm, close, children }: ConfirmProps) {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setError(null)
    try {
      await confirm(text.trim())
      close()
    } catch (cause) {
      setError(asApiError(cause))
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={submit}>
        {children}
        {reason !== undefined && (
          <label class="field">
            <span>{reason}</span>
            <textarea rows={3} maxLength={1024} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
        )}
        {error !== null && <Problem error={error} />}
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={tone === 'bad' ? 'danger' : 'primary'} disabled={busy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
