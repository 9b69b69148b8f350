package admin

import (
	"context"
	"testing"
	"time"
)

// TestLookRecovers: after a call that was slow the next one is asked anew.
func TestLookRecovers(t *testing.T) {
	t.Parallel()
	answers := make(chan int)
	l := &look[int]{ask: func() int { return <-answers }, patience: time.Millisecond}
	if v, ok := l.get(context.Background()); ok {
		t.Fatalf("got %d before there was an answer", v)
	}
	hanging := l.join()
	answers <- 1
	<-hanging.done
	l.patience = time.Minute
	go func() { answers <- 2 }()
	if v, ok := l.get(context.Background()); !ok || v != 2 {
		t.Errorf("got %d, %v; want 2", v, ok)
	}
}

// TestLookIsShared: those who come while a call is under way get its result.
func TestLookIsShared(t *testing.T) {
	t.Parallel()
	answers := make(chan int)
	l := &look[int]{ask: func() int { return <-answers }, patience: time.Minute}
	first, second := l.join(), l.join()
	if first != second {
		t.Fatal("two calls are under way")
	}
	answers <- 1
	<-first.done
	if first.value != 1 {
		t.Errorf("got %d", first.value)
	}
}
